"""What the items of limits and groups say."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

ITEMS: Final = (
    Mutant(
        "a limit item with a new mark expires early",
        modules.LIMIT,
        "mark",
        "write.set(TTL_ATTRIBUTE, seconds(now + KEPT))",
        "pass",
    ),
    Mutant(
        "wake finds no rate", modules.LIMIT, "_limit_fields", "None if rate is None else number(rate.count)", "None"
    ),
    Mutant("a promised time is promised again", modules.LIMIT, "promise", "at + interval(rate)", "at"),
    Mutant("an idle group is forgotten at once", modules.GROUPS, "DynamoGroups._leave", "now + IDLE_GROUP_KEPT", "now"),
    Mutant("the items of a group keep their version", modules.GROUPS, "DynamoGroups._write", "ids.new_token()", "'1'"),
    Mutant(
        "a follow-up job may have another body",
        modules.SETTLING,
        "settle_with_effects",
        "_text(item, 'body_hash') != follow_up.body_hash",
        "not item",
    ),
    Mutant(
        "a submission does not see who waits",
        modules.GROUPS,
        "DynamoGroups._order",
        "Order(None, tail) if tail else Order(self._head(tenant, group), None)",
        "Order(self._head(tenant, group), None)",
    ),
    Mutant(
        "a message is hidden for as long as possible",
        "tidemill.worker.lane_messages",
        "_visibility_seconds",
        "min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_VISIBILITY_SECONDS)",
        "_LONGEST_VISIBILITY_SECONDS",
    ),
    Mutant(
        "a limit of several slots has one",
        modules.LIMIT,
        "_change_slots",
        "limit.concurrency - len(adds)",
        "1 - len(adds)",
    ),
)
