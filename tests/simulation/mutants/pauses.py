"""Pauses, and the configuration that holds them."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PAUSES: Final = (
    Mutant(
        "publish sends what is paused",
        modules.PAUSE_REACTION,
        "PauseReaction.__call__",
        "(pause := configuration.pause_of(each.job, now=now))",
        "(pause := configuration.pause_of(each.job, now=now)) and (not pause)",
    ),
    Mutant(
        "a worker runs what is paused",
        modules.PAUSE_GATE,
        "PauseGate.enter",
        "parked_for_pause(self.run, pause, stale=configuration.stale) if pause else None",
        "None",
    ),
    Mutant(
        "a paused schedule makes a job each time",
        modules.PERIODIC,
        "submission",
        "pause is None",
        "pause is None or job_type.catch_up",
    ),
    Mutant(
        "a time before a pause falls into it",
        modules.PAUSES,
        "Pause.holds",
        "self.since + acts_within <= scheduled",
        "self.since <= scheduled + 1000 * acts_within",
    ),
    Mutant(
        "a pause that has ended is forgotten",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.__post_init__",
        "(*self._pauses, *past)",
        "self._pauses",
    ),
    Mutant(
        "a pause that is extended begins anew",
        modules.PERIODIC,
        "submission",
        "configuration.schedule_paused_since(name, job_type.lane, scheduled=scheduled)",
        "pause.since",
    ),
    Mutant(
        "a paused limit key is not asked for",
        modules.LIMIT_GATE,
        "LimitGate.enter",
        "(pause := configuration.pause_of_limit(slot.line, now=now))",
        "(pause := configuration.pause_of_limit(slot.line, now=now)) and (not pause)",
    ),
    Mutant(
        "a run knows no override",
        modules.CLAIMED_RUN,
        "ClaimedRun.__init__",
        "declared.overridden(overrides)",
        "declared",
    ),
    Mutant("the configuration is read once an hour", modules.CONFIGURATION, "", "seconds=5", "hours=1"),
    Mutant(
        "one operator overwrites another",
        modules.CONFIGURATION_ITEM,
        "_put_configuration",
        "'#version = :read'",
        "'#version >= :read'",
    ),
    Mutant(
        "a message from before a pause starts its job",
        modules.OPERATORS,
        "park",
        "'#generation = #generation + :one'",
        "'#generation = #generation + :one - :one'",
    ),
    Mutant(
        "a pause takes a job away from its worker",
        modules.OPERATORS,
        "park",
        "f\"#state IN ({', '.join(to_send)})\"",
        "f\"(#state IN ({', '.join(to_send)}) OR attribute_exists(#state))\"",
    ),
    Mutant(
        "a parked job forgets its time", modules.OPERATORS, "unpark", "max(due, not_before)", "min(due, not_before)"
    ),
    Mutant(
        "wake releases what is paused",
        modules.RELEASE,
        "Releaser._stands",
        "configuration.pause_of_line(line, now=self._clock())",
        "configuration.pause_of_line(line, now=self._clock()) and False",
    ),
    Mutant(
        "wake never hears of a pause",
        modules.LIMIT,
        "mark_drain",
        "crc32(drain.line.key.encode()) % LINE_SHARDS",
        "LINE_SHARDS",
    ),
    Mutant("the line of a pause in the order of the pause", modules.OPERATORS, "park", "job.created_at", "now"),
    Mutant(
        "a paused job waits for a limit",
        modules.OUTCOMES,
        "_not_run",
        "HoldCause(outcome.wait.cause)",
        "HoldCause.LIMIT",
    ),
)
