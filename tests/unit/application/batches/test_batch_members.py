"""Redrives of the members of a batch: how many in one look, and in whose name."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.batches.batch_members import BatchMembers
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace

BATCH = a_job(redrives=[Redrive(token="t1", at=NOW, by="bob"), Redrive(token="t2", at=NOW, by="ada", reason="fixed")])


class Store:
    """Each redrive takes a second."""

    def __init__(self, refusals: Sequence[Exception] = (), *, busy: Collection[str] = ()) -> None:
        self.now = NOW
        self.busy = busy
        self.tried: list[str] = []
        self.redriven: list[tuple[str, str, str]] = []
        self._refusals = list(refusals)

    def redrive(self, job: Job, *, token: str, now: datetime, by: str, reason: str) -> None:
        assert (token, now) == (BATCH.redrives[-1].token, self.now)
        self.now += SECOND
        self.tried.append(job.id)
        if job.group.key in self.busy:
            raise TransactionConflictError
        if self._refusals:
            raise self._refusals.pop()
        self.redriven.append((job.id, by, reason))


def _redriven(store: Any, *, seconds: float, dead: Sequence[Job] = ()) -> list[tuple[str, str, str]]:
    members = BatchMembers(store=store, batches=store, clock=lambda: store.now, new_token=lambda: "token")
    dead = dead or [a_job(id=str(number)) for number in range(3)]
    members.redrive(BATCH, dead, until=NOW + seconds * SECOND)
    redriven: list[tuple[str, str, str]] = store.redriven
    return redriven


@pytest.mark.parametrize(("seconds", "count"), [(-1, 1), (0, 1), (0.5, 2), (1, 2), (10, 3)])
def test_members_are_redriven_until_the_time_is_over_but_one_in_any_case(seconds: float, count: int) -> None:
    expected = [(str(number), "ada", "fixed") for number in range(count)]

    assert _redriven(Store(), seconds=seconds) == expected


@pytest.mark.parametrize("refusal", [WriteRefusedError("it changed", None), TransactionConflictError()])
def test_a_member_that_another_changes_does_not_keep_the_others_dead(refusal: Exception) -> None:
    assert [name for name, *_ in _redriven(Store([refusal]), seconds=10)] == ["1", "2"]


def test_a_group_that_is_busy_is_tried_once() -> None:
    dead = [a_job(id=name, group=group) for name, group in (("a", "g"), ("b", "g"), ("c", "h"), ("d", None))]
    store = Store(busy=["g"])
    assert sorted(name for name, *_ in _redriven(store, seconds=10, dead=dead)) == ["c", "d"]
    assert sorted(store.tried) == ["a", "c", "d"]


def test_the_members_of_a_group_are_redriven_in_their_order() -> None:
    """Each goes to the end of the group that has passed it."""
    dead = [a_job(id=f"{group}{place}", group=group, sequence=place) for place in (3, 1, 2) for group in "gh"]
    redriven = [name for name, *_ in _redriven(Store(), seconds=10, dead=dead)]
    assert [name for name in redriven if name[0] == "g"] == ["g1", "g2", "g3"]
    assert [name for name in redriven if name[0] == "h"] == ["h1", "h2", "h3"]


def test_no_number_of_busy_groups_keeps_a_free_member_dead() -> None:
    """A look has time for some of them only."""
    busy = [f"busy{number}" for number in range(40)]
    dead = [a_job(id=group, group=group) for group in (*busy, "free")]
    store = Store(busy=busy)
    members = BatchMembers(store=store, batches=store, clock=lambda: store.now, new_token=lambda: "token")  # type: ignore[arg-type]
    for look in range(30):
        members.redrive(replace(BATCH, generation=look), dead, until=store.now + 5 * SECOND)
    assert "free" in [name for name, *_ in store.redriven]


def test_a_member_without_a_group_is_redriven_before_those_of_groups() -> None:
    dead = [a_job(id=name, group=group) for name, group in (("a", "g"), ("b", "h"), ("c", None))]
    assert _redriven(Store(), seconds=0, dead=dead) == [("c", "ada", "fixed")]
