"""What a module declared while it was imported: the loader compares it with the values of the module."""

import sys
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Final, TypeVar

from tidemill.application.event_types import EventSource, EventType
from tidemill.application.job_types import JobType

Declaration = JobType | EventType | EventSource
Declared = TypeVar("Declared", bound=Declaration)

#: The variable of a module with its declarations. They live as long as the module, and each module has its own.
_VARIABLE: Final = "__tidemill_declarations__"
#: The name of the code that runs when a module is imported.
_IMPORT: Final = "<module>"


def noted(declaration: Declared) -> Declared:
    """Note it in the module whose import runs now in this thread, also if a function of another module declares it.

    Nothing imports a script, so what a test, a shell or a running function declares is not noted.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the code that is imported
    while frame is not None and frame.f_code.co_name != _IMPORT:
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") != "__main__":
        frame.f_globals.setdefault(_VARIABLE, []).append(declaration)
    return declaration


def declared_by(module: ModuleType) -> Sequence[Declaration]:
    """In their order, with those that no name of the module leads to."""
    return tuple(vars(module).get(_VARIABLE, ()))
