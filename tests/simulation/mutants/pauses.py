"""Pauses, and the configuration that holds them."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PAUSES: Final = (
    Mutant(
        "publish sends what is paused",
        modules.PAUSE_REACTION,
        "if pause := configuration.pause_of(each.job, now=now):",
        "if (pause := configuration.pause_of(each.job, now=now)) and not pause:",
    ),
    Mutant(
        "a worker runs what is paused",
        modules.GATES,
        "return self._parked_for_pause(job, pause, stale=configuration.stale) if pause else None",
        "return None",
    ),
    Mutant(
        "a paused schedule makes a job each time",
        modules.PERIODIC,
        "if pause is None:",
        "if pause is None or job_type.catch_up:",
    ),
    Mutant(
        "a time before a pause falls into it",
        modules.PAUSES,
        "return self.since + acts_within <= scheduled and (",
        "return self.since <= scheduled + 1000 * acts_within and (",
    ),
    Mutant(
        "a pause that has ended is forgotten",
        modules.RUNTIME_CONFIGURATION,
        "sorted((*self._pauses, *past), key",
        "sorted(self._pauses, key",
    ),
    Mutant(
        "a pause that is extended begins anew",
        modules.PERIODIC,
        "since = configuration.schedule_paused_since(name, job_type.lane, scheduled=scheduled)",
        "since = pause.since",
    ),
    Mutant(
        "a paused limit key is not asked for",
        modules.GATES,
        "if pause := configuration.pause_of_limit(slot.line, now=now):",
        "if (pause := configuration.pause_of_limit(slot.line, now=now)) and not pause:",
    ),
    Mutant(
        "a run knows no override",
        modules.GATES,
        "self._job_type, self._declared_limit = declared.overridden(overrides), declared.limit",
        "self._job_type, self._declared_limit = declared, declared.limit",
    ),
    Mutant(
        "the configuration is read once an hour",
        modules.CONFIGURATION,
        "CACHED_FOR: Final = timedelta(seconds=5)",
        "CACHED_FOR: Final = timedelta(hours=1)",
    ),
    Mutant(
        "one operator overwrites another",
        modules.CONFIGURATION_ITEM,
        '"ConditionExpression": "#version = :read",',
        '"ConditionExpression": "#version >= :read",',
    ),
    Mutant(
        "a message from before a pause starts its job",
        modules.OPERATORS,
        'must not start the parked job.\n        expressions=["#generation = #generation + :one"],',
        'must not start the parked job.\n        expressions=["#generation = #generation + :one - :one"],',
    ),
    Mutant(
        "a pause takes a job away from its worker",
        modules.OPERATORS,
        "f\"#state IN ({', '.join(to_send)})\",",
        "f\"(#state IN ({', '.join(to_send)}) OR attribute_exists(#state))\",",
    ),
    Mutant(
        "a parked job forgets its time",
        modules.OPERATORS,
        "due = max(due, not_before) if not_before else due",
        "due = min(due, not_before) if not_before else due",
    ),
    Mutant(
        "wake releases what is paused",
        modules.RELEASE,
        "if configuration.pause_of_line(line, now=self._clock()):",
        "if configuration.pause_of_line(line, now=self._clock()) and False:",
    ),
    Mutant(
        "wake never hears of a pause",
        modules.LIMIT,
        "shard = crc32(drain.line.key.encode()) % LINE_SHARDS",
        "shard = LINE_SHARDS",
    ),
    Mutant(
        "the line of a pause in the order of the pause",
        modules.OPERATORS,
        "| in_line(wait.line, job.created_at),",
        "| in_line(wait.line, now),",
    ),
    Mutant(
        "a paused job waits for a limit",
        modules.OUTCOMES,
        "cause = HoldCause(outcome.wait.cause)",
        "cause = HoldCause.LIMIT",
    ),
)
