"""The job of a call of the scheduler: its key, its tag, and the pauses that skip it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job_type
from tests.support.configurations import configured, paused
from tidemill.application.waiting.periodic import Call, may_act_unconfirmed, submission
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import DerivedKey
from tidemill.domain.waiting.pauses import CATCH_UP_TAG, Pause
from tidemill.names import Lane

TIME = (NOW - SECOND).isoformat()
TYPE = a_job_type()


def test_a_call_makes_a_job_with_a_key_of_its_scheduled_time() -> None:
    assert submission(Call(scheduled_at=TIME), TYPE, NOTHING_SET, now=NOW) == DerivedKey(
        type="test.job", key=f"test.job {TIME}"
    )


def _paused(**changes: Any) -> RuntimeConfiguration:
    return configured(paused("schedule=test.job", at=NOW - timedelta(minutes=1), **changes))


def test_a_call_for_a_time_in_a_pause_makes_the_job_that_catches_up() -> None:
    made = submission(Call(scheduled_at=TIME), TYPE, _paused(), now=NOW)

    since = (NOW - timedelta(minutes=1)).isoformat()
    assert made == DerivedKey(type="test.job", key=f"test.job catch-up {since}", tags=[CATCH_UP_TAG])


@pytest.mark.parametrize("first", ["type=test.job", "lane=default", "schedule=test.job", "tenant=schedule"])
def test_the_times_of_pauses_that_follow_each_other_without_a_gap_make_one_job(first: str) -> None:
    hour = timedelta(hours=1)
    made = configured(
        paused("lane=bulk", at=NOW - hour),
        paused(first, at=NOW, until=NOW + 3 * hour),
        paused("type=test.job", at=NOW + 2 * hour, until=NOW + 8 * hour),
    )
    times = [NOW + hours * hour for hours in (1, 2, 2.5, 3, 7)]

    keys = {_key(submission(Call(scheduled_at=time.isoformat()), TYPE, made, now=time)) for time in times}

    assert keys == {f"test.job catch-up {NOW.isoformat()}"}


def test_the_times_of_a_pause_that_begins_after_another_has_ended_make_another_job() -> None:
    minute = timedelta(minutes=1)
    second = NOW + 2 * minute
    made = configured(paused("lane=default", at=NOW, until=second), paused("type=test.job", at=second))

    job = submission(Call(scheduled_at=(NOW + 3 * minute).isoformat()), TYPE, made, now=NOW)

    assert _key(job) == f"test.job catch-up {second.isoformat()}"


def _key(made: DerivedKey | Pause) -> str | None:
    assert isinstance(made, DerivedKey)
    return made.key


def test_a_type_that_does_not_catch_up_skips_the_times_of_a_pause() -> None:
    made = submission(Call(scheduled_at=TIME), replace(TYPE, catch_up=False), _paused(), now=NOW)

    assert isinstance(made, Pause)
    assert made.since == NOW - timedelta(minutes=1)


def test_a_time_before_the_pause_makes_its_own_job_though_the_call_comes_in_the_pause() -> None:
    early = (NOW - timedelta(minutes=2)).isoformat()

    made = submission(Call(scheduled_at=early), TYPE, _paused(), now=NOW)

    assert made == DerivedKey(type="test.job", key=f"test.job {early}")


@pytest.mark.parametrize("text", ["rubbish", "2020-01-01T00:00:00"])
def test_a_time_that_cannot_be_read_counts_as_the_present(text: str) -> None:
    made = submission(Call(scheduled_at=text), TYPE, _paused(), now=NOW)

    assert isinstance(made, DerivedKey)
    assert made.tags == [CATCH_UP_TAG]


def test_the_lane_of_the_type_may_be_paused() -> None:
    configuration = configured(paused("lane=bulk", at=NOW - timedelta(minutes=1)))

    on_bulk = submission(Call(scheduled_at=TIME), replace(TYPE, lane=Lane.BULK), configuration, now=NOW)
    on_default = submission(Call(scheduled_at=TIME), TYPE, configuration, now=NOW)

    assert [isinstance(made, DerivedKey) and list(made.tags) for made in (on_bulk, on_default)] == [[CATCH_UP_TAG], []]


def test_an_operator_gets_a_job_also_in_a_pause() -> None:
    made = submission(Call(scheduled_at=TIME, requested=True), TYPE, _paused(), now=NOW)

    assert made == DerivedKey(type="test.job", key=f"test.job requested {TIME}", tags=["requested"])


@pytest.mark.parametrize(
    ("scheduled_at", "requested", "acts"),
    [
        (NOW - timedelta(seconds=149), False, False),
        (NOW - timedelta(seconds=150), False, True),
        (NOW, False, False),
        (NOW, True, True),
        (None, False, True),
    ],
)
def test_without_a_configuration_only_the_last_try_and_an_operator_act(
    scheduled_at: datetime | None, requested: bool, acts: bool
) -> None:
    text = scheduled_at.isoformat() if scheduled_at else "rubbish"

    assert may_act_unconfirmed(Call(scheduled_at=text, requested=requested), now=NOW) is acts
