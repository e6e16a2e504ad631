"""Which submissions are refused or deferred under strain."""

from datetime import timedelta
from typing import cast

import pytest

from tests.support.builders import MILLISECOND, NOW, a_job, a_job_type, types_of, with_changes
from tests.support.configurations import configured, strained
from tidemill.application.admission.foreground import Governor
from tidemill.application.admission.shed_submissions import shed_or_defer
from tidemill.domain.admission.strain import Importance
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State

TYPES = types_of(
    a_job_type(),
    replace(a_job_type(name="test.extra"), importance=Importance.SHEDDABLE),
    replace(a_job_type(name="test.later"), importance=Importance.DEFERRABLE),
)
EXTRA = a_job(type="test.extra")


LATER = a_job(type="test.later", created_at=NOW, due=NOW)
MINUTE = timedelta(minutes=1)


class Governed:
    """A governor that finds these levels, one in each look, and then the last one."""

    def __init__(self, *levels: int) -> None:
        self.levels = [*levels]

    def level(self) -> int:
        return self.levels.pop(0) if len(self.levels) > 1 else self.levels[0]


def admit(
    configuration: RuntimeConfiguration, job: Job = EXTRA, *, draw: float = 0.0, governor: Governed | None = None
) -> Job:
    governed = cast("Governor | None", governor)
    return shed_or_defer(TYPES, lambda: configuration, lambda: NOW, draw=lambda: draw, governor=governed)(job)


def test_without_strain_each_job_is_accepted() -> None:
    for job in (EXTRA, LATER):
        assert admit(NOTHING_SET, job) is job
        assert admit(configured(strained(0)), job) is job


def test_under_strain_a_sheddable_type_is_refused_and_another_is_not() -> None:
    configuration = configured(strained(1))

    normal = a_job()
    assert admit(configuration, normal) is normal
    with pytest.raises(SubmissionShedError) as refused:
        admit(configuration)
    assert (refused.value.type, refused.value.level) == ("test.extra", 1)
    assert refused.value.retry_after == timedelta(minutes=1)


def test_the_caller_waits_no_longer_than_the_strain() -> None:
    with pytest.raises(SubmissionShedError) as refused:
        admit(configured(strained(3, until=NOW + timedelta(seconds=20))))
    assert refused.value.retry_after == timedelta(seconds=20)


@pytest.mark.parametrize(
    ("governor", "seconds"),
    [
        (Governed(0), 20),
        # When the governor lowers its level is not known, also if the operator's ends before.
        (Governed(1), 60),
        (Governed(3), 60),
    ],
)
def test_only_the_strain_of_an_operator_says_when_it_ends(governor: Governed, seconds: int) -> None:
    declared = configured(strained(1, until=NOW + timedelta(seconds=20)))

    with pytest.raises(SubmissionShedError) as refused:
        admit(declared, governor=governor)

    assert refused.value.retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize("levels", [(2, 2), (2, 0)])
def test_the_strain_that_the_governor_finds_sheds_though_it_ends_meanwhile(levels: tuple[int, int]) -> None:
    with pytest.raises(SubmissionShedError) as refused:
        admit(NOTHING_SET, governor=Governed(*levels))

    assert (refused.value.level, refused.value.retry_after) == (2, MINUTE)


def test_a_deferred_job_begins_at_a_whole_millisecond_before_the_end_of_its_deferral() -> None:
    job = admit(configured(strained(2)), LATER, draw=1 / 7)

    until = NOW + 5 * MINUTE + 10 * MINUTE / 7
    assert job.run_at is not None
    assert timedelta(0) < until - job.run_at < MILLISECOND
    assert (job.due, job.run_at.microsecond % 1000) == (job.run_at, 0)


@pytest.mark.parametrize(("draw", "minutes"), [(0.0, 5), (0.5, 10), (1.0, 15)])
def test_under_strain_a_deferrable_type_is_accepted_for_later(draw: float, minutes: int) -> None:
    job = admit(configured(strained(2)), LATER, draw=draw)

    later = NOW + minutes * MINUTE
    assert job == replace(LATER, due=later, run_at=later)


@pytest.mark.parametrize(
    "bounded",
    [
        with_changes(LATER, deadline=NOW + 20 * MINUTE),
        with_changes(LATER, useful_until=NOW + 20 * MINUTE),
        with_changes(LATER, supersedes="key"),
        with_changes(LATER, group="user-7"),
        replace(LATER, state=State.SCHEDULED, due=NOW + 6 * MINUTE, run_at=NOW + 6 * MINUTE),
    ],
)
def test_a_job_that_cannot_wait_or_waits_anyway_keeps_its_time(bounded: Job) -> None:
    assert admit(configured(strained(3)), bounded, draw=0.05) is bounded
