"""Simulate a mutant in a process that is forked from this one before the engine is imported.

The third-party packages are imported once, in this process. A seed that takes too much processor time counts as a hang.
"""

import gc
import importlib
import resource
import signal
import traceback
from collections.abc import Sequence
from typing import Final

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.forks import End, in_forks
from tests.simulation.mutants.generated.generate import GeneratedMutant
from tests.simulation.mutants.generated.plays import Play, fault_of

#: The slowest seed of the present code takes about a second.
_MOST_SECONDS_OF_A_PLAY: Final = 20
_MOST_MEMORY_BYTES: Final = 4 * 2**30
_PRELOADED: Final = ("boto3", "pydantic", "greenlet", "aws_lambda_powertools.utilities.idempotency")


def caught_by(mutant: GeneratedMutant, plays: Sequence[Play]) -> str | None:
    """The story, or the seed with its check, that caught the mutant first; None if every one passed."""
    preload()
    ended = next(in_forks([mutant], lambda mutant, end: _simulated(mutant, plays, end), processes=1))
    if ended.status:
        return f"its process ended with status {ended.status}"
    return ended.text or None


def preload() -> None:
    """Import what every fork needs."""
    for name in _PRELOADED:
        importlib.import_module(name)


def _simulated(mutant: GeneratedMutant, plays: Sequence[Play], end: End) -> str:
    """In the fork. Empty if every one passed."""
    signal.signal(signal.SIGPROF, lambda *_: end("it does not come to an end"))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    try:
        apply(mutant)
        # Imported modules live as long as the process. Freezing them makes garbage collection faster.
        gc.freeze()
        for play in plays:
            signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS_OF_A_PLAY)
            if (fault := fault_of(play)) is not None:
                return _short(fault)
    except BaseException as error:  # noqa: BLE001 - a mutant may break the import of the engine
        return _short(f"it cannot be simulated: {traceback.format_exception_only(error)[-1]}")
    return ""


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
