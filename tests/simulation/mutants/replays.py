"""Faults of replays of events."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

REPLAYED: Final = (
    Mutant(
        "each pass of a replay makes new jobs",
        modules.REPLAY,
        "Replayer._delivered",
        "delivery_id(event, consumer.name, wanted.name)",
        "self._new_token()",
    ),
    Mutant("a second replay finds the jobs of the first", modules.REPLAY, "delivery_id", "consumer, name", "consumer"),
    Mutant(
        "a replay of a group forgets the group",
        modules.REPLAY,
        "Replayer._delivered",
        "None if group is None else f'{consumer.name}/{group}'",
        "None",
    ),
    Mutant(
        "a replay takes the lane of its consumer", modules.REPLAY, "Replayer._delivered", "Lane.BULK", "consumer.lane"
    ),
    Mutant(
        "a replay takes the consumer for its filter",
        modules.REPLAY,
        "Replayer._verdict",
        "wanted.missed and any((one['type'] == consumer.name for one in published['consumers']))",
        "any((one['type'] == consumer.name for one in published['consumers']))",
    ),
    Mutant(
        "a listing of events begins after the time",
        "tidemill.dynamodb.events.listed_events",
        "ListedEvents.pages",
        "begin.at, wanted.until - MILLISECOND",
        "begin.at + 600000 * MILLISECOND, wanted.until - MILLISECOND",
    ),
)
