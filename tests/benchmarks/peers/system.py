"""A job system under load, as `phases` sees it."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.benchmarks.peers.journal import Journal

#: Worker processes of each system, and jobs at once in each. A lane of Tidemill has batches of ten.
WORKERS: Final = 2
JOBS_AT_ONCE: Final = 10
WORK_MILLISECONDS: Final = 50


class Workers(Protocol):
    def start(self) -> None:
        """Start them, and return when they take jobs."""

    def stop(self) -> None: ...

    def pids(self) -> list[int]: ...

    def kill_one(self) -> None:
        """SIGKILL a worker by its process id. Another takes its place, as under a supervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A system whose service (the database, or the queue and the tables) runs."""

    workers: Workers
    #: The producer: a module with `submitter`, and the Python and the environment for it.
    submits: str
    python: Path
    environment: Mapping[str, str]
    journal: Journal
    #: CPU seconds of the service so far.
    service_seconds: Callable[[], float]
    #: Calls or statements of the system so far; NaN where they are not counted.
    round_trips: Callable[[], float]
    #: When the outcome of each job was stored, in seconds since 1970.
    stored: Callable[[], Mapping[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    name: str
    #: How its workers, its service and the time until a killed worker's jobs run again are set.
    setting: str
    guarantee: str
    #: Installs what is missing. Why the system is skipped, or an empty text.
    lacks: Callable[[], str]
    #: Starts the service. The stack stops it. The folder is for logs.
    start: Callable[[ExitStack, Path], Running]
