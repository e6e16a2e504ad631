"""What the items of limits and groups say."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

ITEMS: Final = (
    Mutant(
        "a limit item with a new mark expires early",
        modules.LIMIT,
        "    if slot.line.cause is Cause.LIMIT:\n        write.set(TTL_ATTRIBUTE, seconds(now + KEPT))\n",
        "    if slot.line.cause is Cause.LIMIT:\n        pass\n",
    ),
    Mutant(
        "wake finds no rate",
        modules.LIMIT,
        "_COUNT: None if rate is None else number(rate.count)",
        "_COUNT: None",
    ),
    Mutant(
        "a promised time is promised again",
        modules.LIMIT,
        "    write.set(PROMISED, _microseconds(at + interval(rate)))",
        "    write.set(PROMISED, _microseconds(at))",
    ),
    Mutant(
        "an idle group is forgotten at once",
        modules.GROUPS,
        "expires_at=now + IDLE_GROUP_KEPT",
        "expires_at=now",
    ),
    Mutant(
        "the items of a group keep their version",
        modules.GROUPS,
        "group_items.put_tail(order.tail, version=ids.new_token())",
        'group_items.put_tail(order.tail, version="1")',
    ),
    Mutant(
        "a follow-up job may have another body",
        modules.SETTLING,
        'if _text(item, "body_hash") != follow_up.body_hash:',
        "if not item:",
    ),
    Mutant(
        "a submission does not see who waits",
        modules.GROUPS,
        "return Order(None, tail) if tail else ",
        "return ",
    ),
    Mutant(
        "a message is hidden for as long as possible",
        "tidemill.worker.lane_messages",
        "return min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_VISIBILITY_SECONDS)",
        "return _LONGEST_VISIBILITY_SECONDS",
    ),
    Mutant(
        "a limit of several slots has one",
        modules.LIMIT,
        "number(limit.concurrency - len(adds) + gone)",
        "number(1 - len(adds) + gone)",
    ),
)
