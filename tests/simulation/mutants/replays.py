"""Faults of replays of events."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

REPLAYED: Final = (
    Mutant(
        "each pass of a replay makes new jobs",
        modules.REPLAY,
        "job_id = delivery_id(event, consumer.name, wanted.name)",
        "job_id = self._new_token()",
    ),
    Mutant(
        "a second replay finds the jobs of the first",
        modules.REPLAY,
        "consumer, name]\n",
        "consumer]\n",
    ),
    Mutant(
        "a replay of a group forgets the group",
        modules.REPLAY,
        'group=None if group is None else f"{consumer.name}/{group}",',
        "group=None,",
    ),
    Mutant(
        "a replay takes the lane of its consumer",
        modules.REPLAY,
        "lane=Lane.BULK,",
        "lane=consumer.lane,",
    ),
    Mutant(
        "a replay takes the consumer for its filter",
        modules.REPLAY,
        "if wanted.missed and any(",
        "if any(",
    ),
    Mutant(
        "a listing of events begins after the time",
        "tidemill.dynamodb.listed_events",
        "between(begin.at,",
        "between(begin.at + 600_000 * MILLISECOND,",
    ),
)
