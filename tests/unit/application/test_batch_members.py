"""Redrives of the members of a batch: how many in one look, and in whose name."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.batch_members import BatchMembers
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job, Redrive

BATCH = a_job(redrives=[Redrive(token="t1", at=NOW, by="bob"), Redrive(token="t2", at=NOW, by="ada", reason="fixed")])


class Store:
    """Each redrive takes a second."""

    def __init__(self, refusals: Sequence[Exception] = ()) -> None:
        self.now = NOW
        self.redriven: list[tuple[str, str, str]] = []
        self._refusals = list(refusals)

    def redrive(self, job: Job, *, token: str, now: datetime, by: str, reason: str) -> None:
        assert (token, now) == ("token", self.now)
        self.now += SECOND
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
    store = Store([TransactionConflictError()])
    assert [name for name, *_ in _redriven(store, seconds=10, dead=dead)] == ["c", "d"]
    assert store.now == NOW + 3 * SECOND
