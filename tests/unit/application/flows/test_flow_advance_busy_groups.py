"""Advances of flows while others keep groups of nodes busy: publish must not wait for them."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.in_memory_flows import InMemoryFlows
from tests.support.one_at_a_time import OneAtATime
from tidemill.application.flows import flow_advance
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import State


class Busy(InMemoryFlows):
    """Others keep the groups busy whose names begin so."""

    def __init__(self, *groups: str | None, after: Sequence[Any] = ("a",), died: bool = False) -> None:
        children = [{"name": f"n{number}", "group": group} for number, group in enumerate(groups)]
        stored = [{name: value for name, value in each.items() if value} | {"after": after} for each in children]
        super().__init__([{"name": "a"}, *stored])
        self.look_at_all()
        self.end("a", State.DEAD if died else State.SUCCEEDED)
        self.tried = 0

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        if job.group.key and job.group.key.startswith("busy"):
            self.tried += 1
            raise TransactionConflictError("others write the group")
        return super().insert_if_absent(job, batch=batch)


def test_an_advance_tries_a_busy_group_once_and_leaves_its_nodes_to_a_look() -> None:
    flows = Busy(*["busy"] * 20, "free", None)
    assert flows.advance("a") == ["n20", "n21"]
    assert (flows.tried, flows.looks) == (1, 1)


def test_an_advance_tries_few_busy_groups() -> None:
    flows = Busy(*(f"busy{number}" for number in range(100)), None)
    assert flows.advance("a") == ["n100"]
    assert flows.tried < flow_advance.MOST_BUSY + 8
    assert flows.looks == 1


@pytest.mark.parametrize(("count", "looks"), [(25, 0), (26, 1)])
def test_an_advance_starts_some_nodes_of_one_group(count: int, looks: int) -> None:
    flows = Busy(*["g"] * count)
    assert len(flows.advance("a")) == 25
    assert flows.looks == looks


def test_an_advance_marks_all_nodes_of_one_group() -> None:
    """A mark takes part in no group."""
    flows = Busy(*["g"] * 30, died=True)
    assert flows.advance("a") == []
    assert (list(flows.states().values()).count("blocked"), flows.looks) == (30, 0)


def test_nodes_of_one_group_start_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, they would keep each other busy."""
    insert, inserting = InMemoryFlows.insert_if_absent, OneAtATime()

    def insert_alone(self: InMemoryFlows, job: Job, *, batch: Job | None = None) -> Job:
        inserting.visit()
        return insert(self, job, batch=batch)

    flows = Busy(*["g"] * 10)
    monkeypatch.setattr(InMemoryFlows, "insert_if_absent", insert_alone)
    assert flows.advance("a") == [f"n{number}" for number in range(10)]
