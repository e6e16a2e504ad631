"""The clock's call becomes one job, however often it is made; what cannot become one is heard of."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.support.deployed_functions import Mill, mill_on
from tests.support.faulty_client import Fault
from tests.support.job_tables import Table
from tidemill import composition
from tidemill.application.configuration import CACHED_FOR, CachedConfiguration, Configurator
from tidemill.application.job_types import JobTypes
from tidemill.application.waiting.periodic import REQUESTED_TAG
from tidemill.domain.errors import StoreUnavailableError, UnknownJobTypeError
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import ACTS_WITHIN
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints.tick import handle
from tidemill.names import SCHEDULE_TENANT, SCHEDULED_TIME, TICK_PAYLOAD, TICK_REQUESTED, TICK_SCHEDULED_AT, TICK_TYPE

TIME = "2026-01-01T03:00:00Z"


@dataclass(frozen=True)
class Call:
    """The context that Lambda gives to a call."""

    aws_request_id: str = "request"


@pytest.fixture
def mill(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    with mill_on(table, monkeypatch) as mill:
        yield mill


def _tick(scheduled_at: str = TIME, type_: str = "test.noop") -> None:
    handle({TICK_TYPE: type_, TICK_SCHEDULED_AT: scheduled_at}, Call())


def _jobs(mill: Mill) -> list[Job]:
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return [decode(item) for item in items if "state" in item]


def test_a_call_submits_a_job_of_its_type_for_the_clock_s_own_tenant(mill: Mill) -> None:
    _tick()
    (job,) = _jobs(mill)
    assert (job.type, job.tenant, job.state, job.payload.text) == ("test.noop", SCHEDULE_TENANT, State.QUEUED, "{}")
    assert job.trace == "request"


def test_a_schedule_that_fires_twice_makes_one_job(mill: Mill) -> None:
    _tick()
    mill.late = timedelta(minutes=7)
    _tick()
    assert len(_jobs(mill)) == 1


def test_each_scheduled_time_and_each_type_has_a_job_of_its_own(mill: Mill) -> None:
    _tick("2026-01-01T03:00:00Z")
    _tick("2026-01-01T04:00:00Z")
    _tick("2026-01-01T03:00:00Z", "test.scripted")
    assert len(_jobs(mill)) == 3


def test_a_scheduler_that_does_not_say_the_time_gets_one_job_a_minute(mill: Mill) -> None:
    begun = mill.now()
    mill.late = timedelta(seconds=60 - begun.second)
    _tick(SCHEDULED_TIME)
    mill.late += timedelta(seconds=30)
    _tick(SCHEDULED_TIME)
    assert len(_jobs(mill)) == 1
    mill.late += timedelta(seconds=40)
    _tick(SCHEDULED_TIME)
    assert len(_jobs(mill)) == 2


def test_an_unknown_type_raises_so_that_the_alarm_fires(mill: Mill) -> None:
    with pytest.raises(UnknownJobTypeError):
        _tick(type_="test.gone")
    assert not _jobs(mill)


def _changes(mill: Mill) -> Configurator:
    return Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)


def _pause(mill: Mill, target: str, **value: object) -> None:
    changes = _changes(mill)
    changes.set(changes.read(), f"pauses.{target}", value, by="arn:ops", reason="")
    mill.late += ACTS_WITHIN


def _resume(mill: Mill, target: str) -> None:
    changes = _changes(mill)
    changes.remove(changes.read(), f"pauses.{target}", by="arn:ops", reason="")
    mill.late += ACTS_WITHIN


def _time(mill: Mill, after: timedelta = timedelta(0)) -> str:
    return f"{mill.now() + after:%Y-%m-%dT%H:%M:%S.%fZ}"


@pytest.mark.parametrize("target", ["schedule=test.noop", "type=test.noop", "lane=default", "tenant=schedule"])
def test_all_times_of_a_pause_make_one_job_for_its_end(mill: Mill, target: str) -> None:
    _pause(mill, target)
    _tick(_time(mill))
    _tick(_time(mill, timedelta(hours=1)))

    (job,) = _jobs(mill)
    assert list(job.tags) == ["catch-up"]
    pause = composition.parts().configuration.current().pause_of(job, now=mill.now())
    assert pause is not None
    assert str(pause.target) == target


def test_a_time_before_a_pause_keeps_its_job_when_it_is_delivered_again_in_the_pause(mill: Mill) -> None:
    before = _time(mill)
    _tick(before)
    _pause(mill, "schedule=test.noop")
    _tick(before)

    (job,) = _jobs(mill)
    assert not job.tags


def test_a_time_that_a_function_may_handle_before_it_knows_of_the_pause_does_not_fall_into_it(mill: Mill) -> None:
    begin = mill.now()
    composition.parts().configuration.current()
    changes = _changes(mill)
    changes.set(changes.read(), "pauses.schedule=test.noop", {}, by="arn:ops", reason="")
    early = f"{begin + CACHED_FOR / 2:%Y-%m-%dT%H:%M:%S.%fZ}"
    mill.late += CACHED_FOR / 2
    _tick(early)
    mill.late += ACTS_WITHIN
    _tick(early)
    assert len(_jobs(mill)) == 1


@pytest.mark.parametrize("again", [False, True], ids=["", "and paused again"])
def test_a_time_of_a_pause_that_has_ended_makes_no_second_job(mill: Mill, again: bool) -> None:
    _pause(mill, "schedule=test.noop")
    inside = _time(mill)
    _tick(inside)
    _resume(mill, "schedule=test.noop")
    if again:
        _pause(mill, "schedule=test.noop")
    mill.late += timedelta(hours=20)
    _tick(inside)
    assert len(_jobs(mill)) == 1


@pytest.mark.parametrize("second", ["schedule=test.noop", "lane=default", "tenant=schedule"])
def test_pauses_without_a_gap_between_them_make_one_job(mill: Mill, second: str) -> None:
    _pause(mill, "schedule=test.noop")
    inside = _time(mill)
    _tick(inside)
    _pause(mill, second)
    _tick(inside)
    _tick(_time(mill))
    if second != "schedule=test.noop":
        _resume(mill, "schedule=test.noop")
    mill.late += timedelta(days=7)
    _pause(mill, "type=test.other")
    _tick(_time(mill))
    assert len(_jobs(mill)) == 1


def test_a_pause_after_a_gap_has_a_job_of_its_own(mill: Mill) -> None:
    _pause(mill, "schedule=test.noop")
    _tick(_time(mill))
    _resume(mill, "schedule=test.noop")
    mill.late += timedelta(seconds=1)
    _pause(mill, "schedule=test.noop")
    _tick(_time(mill))
    assert len(_jobs(mill)) == 2


def test_a_time_that_a_function_may_handle_before_it_knows_of_the_end_falls_into_the_pause(mill: Mill) -> None:
    _pause(mill, "schedule=test.noop")
    composition.parts().configuration.current()
    changes = _changes(mill)
    changes.remove(changes.read(), "pauses.schedule=test.noop", by="arn:ops", reason="")
    mill.late += CACHED_FOR / 2
    late = _time(mill)
    _tick(late)
    mill.late += ACTS_WITHIN
    _tick(late)
    (job,) = _jobs(mill)
    assert list(job.tags) == ["catch-up"]
    _tick(_time(mill))
    assert len(_jobs(mill)) == 2


@pytest.mark.parametrize("written", ["soon", "2026-01-01T03:00:00"])
def test_an_unreadable_time_falls_into_the_pause_in_force(mill: Mill, written: str) -> None:
    _pause(mill, "schedule=test.noop")
    _tick(written)
    (job,) = _jobs(mill)
    assert list(job.tags) == ["catch-up"]


def test_a_disabled_schedule_stops_no_job_but_the_one_that_makes_up(mill: Mill) -> None:
    _tick("2026-01-01T03:00:00Z")
    _pause(mill, "schedule=test.noop")

    (job,) = _jobs(mill)
    assert composition.parts().configuration.current().pause_of(job, now=mill.now()) is None


def test_the_job_that_makes_up_for_a_pause_does_not_grow_too_old_in_it(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_lived = replace(composition.known_job_types().get("test.noop"), max_age=timedelta(minutes=5))
    monkeypatch.setattr(composition, "known_job_types", lambda: JobTypes({"test.noop": short_lived}))
    vars(composition.parts()).pop("submit", None)
    _tick(_time(mill))
    _pause(mill, "schedule=test.noop")
    _tick(_time(mill))

    assert {tuple(job.tags): job.lifetime.useful_until is None for job in _jobs(mill)} == {
        (): False,
        ("catch-up",): True,
    }


def test_a_type_without_catch_up_skips_the_times_of_a_pause(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    skips = replace(composition.known_job_types().get("test.noop"), catch_up=False)
    monkeypatch.setattr(composition, "known_job_types", lambda: JobTypes({"test.noop": skips}))
    _pause(mill, "schedule=test.noop")
    assert handle({TICK_TYPE: "test.noop", TICK_SCHEDULED_AT: _time(mill)}, Call()) == {}
    assert not _jobs(mill)


def test_an_operator_runs_a_disabled_schedule_once_a_second(mill: Mill) -> None:
    _pause(mill, "schedule=test.noop")
    requested = {TICK_TYPE: "test.noop", TICK_SCHEDULED_AT: TIME, TICK_REQUESTED: "true"}
    answers = [handle(requested, Call()) for _ in range(2)]

    (job,) = _jobs(mill)
    assert answers == [{"id": job.id, "state": "queued"}] * 2
    assert job.tags == (REQUESTED_TAG,)
    assert composition.parts().configuration.current().pause_of(job, now=mill.now()) is None
    _tick()
    assert len(_jobs(mill)) == 2


def test_an_operator_asks_whether_a_payload_fits(mill: Mill) -> None:
    asked = {TICK_TYPE: "test.noop", TICK_SCHEDULED_AT: ""}
    assert handle({**asked, TICK_PAYLOAD: {}}, Call()) == {"faults": []}
    assert handle({**asked, TICK_PAYLOAD: {"n": 1}}, Call()) == {"faults": []}
    assert not _jobs(mill)


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.ANSWER_LOST])
def test_a_store_that_does_not_answer_raises_and_the_next_try_makes_the_one_job(mill: Mill, fault: Fault) -> None:
    mill.client.faults = [fault]
    with pytest.raises(StoreUnavailableError):
        _tick()
    _tick()
    assert len(_jobs(mill)) == 1


@pytest.mark.parametrize("known", [False, True], ids=["never read", "read before"])
def test_a_call_that_cannot_read_the_settings_waits_for_its_next_try(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    settings = _settings_that_fail(mill, monkeypatch, reads=int(known))
    if known:
        settings.current()
    _pause(mill, "schedule=test.noop")
    inside = _time(mill)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="Lambda tries again"):
            _tick(inside)

    assert not _jobs(mill)


def test_settings_that_stay_unreadable_stop_no_periodic_job(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_that_fail(mill, monkeypatch, reads=0)
    scheduled = _time(mill)
    # The last try of Lambda: one minute and two minutes after the ones before.
    mill.late += timedelta(minutes=3)
    _tick(scheduled)
    _tick(scheduled)

    assert len(_jobs(mill)) == 1


def test_an_operator_s_run_needs_no_settings(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_that_fail(mill, monkeypatch, reads=0)
    handle({TICK_TYPE: "test.noop", TICK_SCHEDULED_AT: _time(mill), TICK_REQUESTED: "true"}, Call())
    assert len(_jobs(mill)) == 1


def _settings_that_fail(mill: Mill, monkeypatch: pytest.MonkeyPatch, *, reads: int) -> CachedConfiguration:
    """After so many reads."""
    left = [NOTHING_SET] * reads

    def read() -> RuntimeConfiguration:
        if not left:
            raise StoreUnavailableError("down")
        return left.pop()

    settings = CachedConfiguration(read, clock=mill.now, failed=lambda _error: None)
    monkeypatch.setattr(composition.FunctionParts, "configuration", settings)
    return settings
