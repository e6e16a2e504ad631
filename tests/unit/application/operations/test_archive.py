"""Which changes of jobs get a file in the archive, and which records come again."""

import time
from threading import Barrier, Lock

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.dispatch.publish import UnreadableChange
from tidemill.application.operations.archive import archive
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import CANARY_TYPE, TERMINAL_STATES

DONE = a_job(state=State.SUCCEEDED, finished_at=NOW)
ALIVE = replace(DONE, state=State.RUNNING, finished_at=None)
DEAD = replace(DONE, state=State.DEAD)


class Files:
    """Files of the archive, some of which cannot be written."""

    def __init__(self, *refused: str, error: Exception | None = None) -> None:
        self.written: list[Job] = []
        self._refused = refused
        self._error = error or StoreUnavailableError("S3 does not respond")
        self._lock = Lock()

    def write(self, job: Job) -> None:
        if job.id in self._refused:
            raise self._error
        with self._lock:
            self.written.append(job)


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        (ALIVE, DONE, True),
        (None, DONE, True),
        (DONE, DONE, False),
        # A migration.
        (DONE, replace(DONE, tags=("a",)), False),
        (DEAD, replace(DEAD, state=State.CANCELLED), True),
        (DEAD, replace(DEAD, finished_at=NOW + SECOND), True),
        (DEAD, ALIVE, False),
        (None, ALIVE, False),
        (ALIVE, None, False),
        (DONE, None, False),
        (ALIVE, replace(DONE, type=CANARY_TYPE), False),
    ],
)
def test_each_end_of_a_job_has_a_file(before: Job | None, after: Job | None, written: bool) -> None:
    files = Files()

    assert archive([Change("1", before, after)], [], files) == []

    assert files.written == ([after] if written else [])


@pytest.mark.parametrize("state", TERMINAL_STATES)
def test_each_terminal_state_is_an_end(state: str) -> None:
    job, files = replace(DONE, state=State(state)), Files()
    archive([Change("1", ALIVE, job)], [], files)
    assert files.written == [job]


def test_the_records_that_cannot_be_written_or_read_come_again() -> None:
    jobs = [replace(DONE, id=name) for name in "abc"]
    changes = [Change(job.id, ALIVE, job) for job in jobs]
    unreadable = [UnreadableChange("9", "t", "j", ValueError("a newer version"))]
    files = Files("b")

    assert archive(changes, unreadable, files) == ["b", "9"]
    assert sorted(job.id for job in files.written) == ["a", "c"]


def test_a_fault_of_the_code_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        archive([Change("1", ALIVE, DONE)], [], Files(DONE.id, error=ZeroDivisionError()))


class SlowFiles:
    """Files that are written eight at a time: a write ends once eight have begun."""

    def __init__(self) -> None:
        self.most = 0
        self._open = 0
        self._eight = Barrier(8)
        self._lock = Lock()

    def write(self, job: Job) -> None:
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
        # A ninth one would begin meanwhile.
        time.sleep(0.02)
        self._eight.wait(PATIENCE_SECONDS)
        with self._lock:
            self._open -= 1


def test_eight_files_are_written_at_once() -> None:
    files = SlowFiles()
    changes = [Change(str(number), ALIVE, replace(DONE, id=str(number))) for number in range(16)]

    assert archive(changes, [], files) == []

    assert files.most == 8
