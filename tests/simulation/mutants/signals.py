"""Faults of signals and of the waits that they end."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SIGNALLED: Final = (
    Mutant(
        "another payload keeps the signals",
        modules.OPERATORS,
        "removes += GIVEN_TO_PAYLOAD",
        'removes += [name for name in GIVEN_TO_PAYLOAD if name != "signals"]',
    ),
    Mutant(
        "a signal during the run is overlooked",
        modules.OUTCOMES,
        "came = unused(known, outcome.name) is not None and not seen",
        "came = False",
    ),
    Mutant(
        "a wait begins beside its first signal",
        modules.SIGNALS,
        'else f"attribute_not_exists(#{SIGNALS_ATTRIBUTE})"',
        'else f"(attribute_not_exists(#{SIGNALS_ATTRIBUTE}) OR attribute_exists(#{SIGNALS_ATTRIBUTE}))"',
    ),
    Mutant(
        "one signal overwrites another",
        modules.SIGNALS,
        'f"size(#{SIGNALS_ATTRIBUTE}) = {_KNOWN}"',
        'f"size(#{SIGNALS_ATTRIBUTE}) >= {_KNOWN}"',
    ),
    Mutant(
        "a signal stops a run",
        modules.SIGNALS,
        '        "#state = :state",\n',
        '        "(#state = :state OR #state <> :state)",\n',
    ),
    Mutant(
        "a signal wakes no job",
        modules.SIGNAL_ANSWERS,
        "return Answer.WAKES if waits_for_signal(job)",
        "return Answer.KEPT if waits_for_signal(job)",
    ),
    Mutant(
        "a signal wakes only parked jobs",
        modules.SIGNAL_ANSWERS,
        "return job.state is State.QUEUED and at_end",
        "return False and at_end",
    ),
    Mutant(
        "a second value is kept",
        modules.SIGNAL_ANSWERS,
        "if unused(job.signals, name):",
        "if False:",
    ),
    Mutant(
        "a late signal is kept",
        modules.SIGNAL_ANSWERS,
        "if job.state in TERMINAL and not",
        "if False and not",
    ),
    Mutant(
        "a used signal is not marked",
        modules.OUTCOMES,
        "signals=with_used(known, outcome.name) if seen else None",
        "signals=None",
    ),
    Mutant(
        "wake overlooks a wait",
        modules.READER,
        "return State.SCHEDULED if alone else job.state",
        "return job.state",
    ),
    Mutant(
        "wake ends a wait early",
        modules.WAKE,
        "self._store.unpark(job, now=self._clock(), due=job.due or self._clock())",
        "self._store.unpark(job, now=self._clock(), due=self._clock())",
    ),
    Mutant(
        "an input is awaited without end",
        modules.OUTCOMES,
        "awaited.times > outcome.most:",
        "awaited.times > 99:",
    ),
    Mutant(
        "a run sees used signals",
        modules.NEW_RUN,
        "for each in job.signals if not each.used}",
        "for each in job.signals}",
    ),
)
