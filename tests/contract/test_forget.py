"""`forget`: generation = :g, finished_at = :f; and `ended`, which finds the jobs to forget."""

import pytest

from tests.support.builders import NOW, SECOND, SETTLEMENTS, a_job, brought_to, claimed, stored, with_changes
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.records import replace
from tidemill.domain.states import TERMINAL, State


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_forget_deletes_a_job_that_has_ended(store: JobStore, state: State) -> None:
    ended = brought_to(store, state)

    store.forget(ended)

    assert store.get(ended.tenant, ended.id) is None


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL))
def test_forget_is_rejected_by_a_live_job(store: JobStore, state: State) -> None:
    live = brought_to(store, state)

    with pytest.raises(WriteRefusedError) as refused:
        store.forget(live)

    assert refused.value.current == live


def test_forget_is_rejected_when_the_job_was_redriven_since_it_was_read(store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="a redrive", now=NOW, by="ada")

    with pytest.raises(WriteRefusedError):
        store.forget(dead)

    assert stored(store, dead) == queued


def test_forget_is_rejected_by_a_new_job_under_the_same_key(store: JobStore, table: Table) -> None:
    old = brought_to(store, State.SUCCEEDED)
    table.put(with_changes(old, expires_at=NOW.replace(microsecond=0) - SECOND))
    store.insert_if_absent(replace(a_job(), id=old.id))
    later = NOW + SECOND
    store.settle(claimed(store, old, now=later), SETTLEMENTS[State.SUCCEEDED], now=later)

    with pytest.raises(WriteRefusedError):
        store.forget(old)


@pytest.mark.parametrize("fault", [None, Fault.SENT_TWICE])
def test_forget_of_a_missing_job_succeeds(store: JobStore, client: FaultyClient, fault: Fault | None) -> None:
    ended = brought_to(store, State.SUCCEEDED)
    client.faults = [fault]

    store.forget(ended)
    store.forget(ended)

    assert store.get(ended.tenant, ended.id) is None
