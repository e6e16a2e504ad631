"""The service of the drills, and the demo's job types that call it."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Event

import pytest

from demo.drills.downstream import LoopbackDownstream, down
from functions.demo_jobs.downstream import ServiceError, charge, ship
from functions.demo_jobs.ledger import TABLE_VARIABLE
from tests.support.builders import a_run
from tests.support.patience import PATIENCE_SECONDS
from tidemill import Done, JobType
from tidemill.domain.breakers.downstream_errors import ErrorClass, classify


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackDownstream]:
    monkeypatch.setenv(TABLE_VARIABLE, "ledger")
    made = LoopbackDownstream()
    yield made
    made.close()


def _call(job_type: JobType, service: LoopbackDownstream) -> object:
    return job_type(job_type.parse(json.dumps({"port": service.port, "ledger": "one", "number": 1})), a_run())


@pytest.mark.parametrize("job_type", [charge, ship])
def test_a_call_that_succeeds_commits_its_effect(job_type: JobType, service: LoopbackDownstream) -> None:
    done = _call(job_type, service)

    assert isinstance(done, Done)
    assert len(done.writes) == 1
    assert service.calls() == (HTTPStatus.NO_CONTENT,)


def test_a_service_that_is_down_counts_against_its_breaker(service: LoopbackDownstream) -> None:
    service.behave(down)
    with pytest.raises(ServiceError, match="503") as caught:
        _call(charge, service)

    assert classify(caught.value) is ErrorClass.TRANSIENT
    assert service.calls() == (HTTPStatus.SERVICE_UNAVAILABLE,)


def test_a_service_knows_how_many_calls_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TABLE_VARIABLE, "ledger")
    second = Event()
    slow = LoopbackDownstream(sleep=lambda _: second.wait(PATIENCE_SECONDS))

    def behave(at_work: int) -> tuple[HTTPStatus, float]:
        if at_work > 1:
            second.set()
        return (HTTPStatus.NO_CONTENT if at_work == 1 else HTTPStatus.SERVICE_UNAVAILABLE), 1

    slow.behave(behave)
    with ThreadPoolExecutor(2) as pool, contextlib.closing(slow):
        errors = [each.exception() for each in [pool.submit(_call, charge, slow) for _ in range(2)]]
    assert {type(error) for error in errors} == {type(None), ServiceError}
