"""`wake`, `nudge`, `redrive`: created_at = as read. A later job may have the key, and its generations begin at 1."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, brought_to, stored
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

_LIMIT = timedelta(minutes=1)
_LATER = NOW + timedelta(hours=1)

Write = Callable[[JobStore, Job], None]


def _wake(store: JobStore, job: Job) -> None:
    store.wake(job, now=NOW)


def _nudge(store: JobStore, job: Job) -> None:
    store.nudge(job, now=_LATER, limit=_LIMIT)


def _redrive(store: JobStore, job: Job) -> None:
    store.redrive(job, token="a redrive", now=NOW + SECOND, by="ada")


@pytest.mark.parametrize(
    ("state", "write"),
    [(State.SCHEDULED, _wake), (State.QUEUED, _nudge), (State.RUNNING, _nudge), (State.DEAD, _redrive)],
)
def test_the_write_is_refused_by_a_later_job_under_the_same_key(
    store: JobStore, table: Table, state: State, write: Write
) -> None:
    read = brought_to(store, state)
    table.put(replace(read, created_at=read.created_at + MILLISECOND))
    another = stored(store, read)

    with pytest.raises(WriteRefusedError) as refused:
        write(store, read)

    assert refused.value.current == another == stored(store, read)
    write(store, another)


def test_a_queued_later_job_is_not_mistaken_for_the_job_to_wake(store: JobStore, table: Table) -> None:
    read = brought_to(store, State.SCHEDULED)
    table.put(replace(read, created_at=read.created_at + MILLISECOND, state=State.QUEUED))

    with pytest.raises(WriteRefusedError):
        store.wake(read, now=NOW)
