"""Faults of signals and of the waits that they end."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SIGNALLED: Final = (
    Mutant(
        "another payload keeps the signals",
        modules.OPERATORS,
        "redrive",
        "GIVEN_TO_PAYLOAD",
        "[name for name in GIVEN_TO_PAYLOAD if name != 'signals']",
    ),
    Mutant(
        "a signal during the run is overlooked",
        modules.OUTCOMES,
        "_awaits",
        "unused(known, outcome.name) is not None and (not seen)",
        "False",
    ),
    Mutant(
        "a wait begins beside its first signal",
        modules.SIGNALS,
        "no_more_signals",
        "f'attribute_not_exists(#{SIGNALS_ATTRIBUTE})'",
        "f'(attribute_not_exists(#{SIGNALS_ATTRIBUTE}) OR attribute_exists(#{SIGNALS_ATTRIBUTE}))'",
    ),
    Mutant(
        "one signal overwrites another",
        modules.SIGNALS,
        "no_more_signals",
        "f'size(#{SIGNALS_ATTRIBUTE}) = {_KNOWN}'",
        "f'size(#{SIGNALS_ATTRIBUTE}) >= {_KNOWN}'",
    ),
    Mutant(
        "a signal stops a run",
        modules.SIGNALS,
        "as_read",
        "'#state = :state'",
        "'(#state = :state OR #state <> :state)'",
    ),
    Mutant("a signal wakes no job", modules.SIGNAL_ANSWERS, "answer", "Answer.WAKES", "Answer.KEPT"),
    Mutant(
        "a signal wakes only parked jobs",
        modules.SIGNAL_ANSWERS,
        "waits_for_signal",
        "job.state is State.QUEUED",
        "False",
    ),
    Mutant("a second value is kept", modules.SIGNAL_ANSWERS, "answer", "unused(job.signals.received, name)", "False"),
    Mutant("a late signal is kept", modules.SIGNAL_ANSWERS, "answer", "job.state in TERMINAL", "False"),
    Mutant(
        "a used signal is not marked",
        modules.OUTCOMES,
        "_awaits",
        "with_used(known, outcome.name) if seen else None",
        "None",
    ),
    Mutant(
        "wake overlooks a wait", modules.READER, "_listed_as", "State.SCHEDULED if alone else job.state", "job.state"
    ),
    Mutant("wake ends a wait early", modules.WAKE, "Waker._wake", "job.due or self._clock()", "self._clock()"),
    Mutant(
        "an input is awaited without end",
        modules.OUTCOMES,
        "_awaits",
        "awaited.times > outcome.most",
        "awaited.times > 99",
    ),
    Mutant("a run sees used signals", modules.NEW_RUN, "new_run", "not each.used", ""),
)
