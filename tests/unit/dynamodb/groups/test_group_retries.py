"""How long a write of a group is tried while other writes are faster."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW, a_job
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Redrive
from tidemill.domain.states import State
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.transactions import Entry, Part, Refusal, RefusedError
from tidemill.system import random_draw


@dataclass
class Time:
    """Replaces the module `time`, and notes each pause."""

    now: float = 1_000.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(groups, "time", time)
    monkeypatch.setattr(random_draw, "draw", lambda: 1.0)
    return time


def refused_by(part: Part) -> RefusedError:
    return RefusedError([Refusal(Entry(part, {}), None)])


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = [error] * times

    def attempt() -> str:
        if left:
            raise left.pop()
        return "written"

    return attempt


@pytest.mark.parametrize("error", [refused_by(Part.GROUP), TransactionConflictError("busy")])
def test_the_pause_doubles_up_to_a_quarter_of_a_second(time: Time, error: Exception) -> None:
    assert groups.retried(failing(6, error)) == "written"
    assert time.pauses == [0.02, 0.04, 0.08, 0.16, 0.25, 0.25]


@pytest.mark.parametrize("error", [refused_by(Part.GROUP), TransactionConflictError("busy")])
def test_a_second_is_the_longest(time: Time, error: Exception) -> None:
    with pytest.raises(TransactionConflictError, match="faster for 1 s") as given_up:
        groups.retried(failing(7, error))

    assert given_up.value.__cause__ is error
    assert time.now < 1_001.0


def test_a_pause_that_would_end_at_the_deadline_is_not_begun(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_draw, "draw", lambda: 50.0)

    with pytest.raises(TransactionConflictError):
        groups.retried(failing(1, refused_by(Part.GROUP)))
    assert time.pauses == []


@pytest.mark.parametrize("error", [refused_by(Part.OWN), StoreUnavailableError("out")])
def test_no_other_failure_isretried(time: Time, error: Exception) -> None:
    with pytest.raises(type(error)):
        groups.retried(failing(1, error))
    assert time.pauses == []


def test_the_pause_is_random(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    draws: Any = iter([0.5, 0.25])
    monkeypatch.setattr(random_draw, "draw", lambda: next(draws))

    groups.retried(failing(2, refused_by(Part.GROUP)))
    assert time.pauses == [0.01, 0.01]


def test_a_job_that_is_gone_right_after_its_redrive_is_refused() -> None:
    """An operator has deleted it."""

    class Client:
        def get_item(self, **_request: Any) -> Any:
            return {}

        def transact_write_items(self, **_request: Any) -> None:
            """It takes each write."""

    client: Any = Client()
    order = groups.DynamoGroups(client, table="jobs", read=lambda _tenant, _id: None, indexes=NOT_LISTED)
    job = a_job(state=State.DEAD, due=None, group="g", sequence=1)

    with pytest.raises(WriteRefusedError) as refused:
        order.redrive(job, "g", Redrive(token="r", at=NOW, by="ada"), mine=lambda _current: True)

    assert refused.value.current is None


def test_a_group_that_a_job_enters_at_this_moment_is_left_to_the_record_of_that_job() -> None:
    head = {"pk": {"S": '!head#["t","g"]'}, "sequence": {"N": "1"}, "version": {"S": "1"}}
    writes: list[Any] = []

    class Client:
        def get_item(self, **request: Any) -> Any:
            return {"Item": head} if request["Key"]["pk"]["S"].startswith("!head#") else {}

        def transact_write_items(self, **request: Any) -> None:
            writes.append(request)
            response: Any = {
                "Error": {"Code": "TransactionCanceledException", "Message": "no"},
                "CancellationReasons": [{"Code": "TransactionConflict"}],
            }
            raise ClientError(response, "TransactWriteItems")

    client: Any = Client()
    order = groups.DynamoGroups(client, table="jobs", read=lambda _tenant, _id: None, indexes=NOT_LISTED)

    assert order.advance("t", "g", now=NOW) is None
    assert len(writes) == 1
