"""Which submissions are refused under strain."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.builders import NOW, a_job, a_job_type, types_of
from tests.support.configurations import configured, strained
from tidemill.application.shed_submissions import refuse_shed
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.strain import Importance

TYPES = types_of(a_job_type(), replace(a_job_type(name="test.extra"), importance=Importance.SHEDDABLE))
EXTRA = a_job(type="test.extra")


def admit(configuration: RuntimeConfiguration, job: object = EXTRA) -> None:
    refuse_shed(TYPES, lambda: configuration, lambda: NOW)(job)  # type: ignore[arg-type]  # a Job


def test_without_strain_each_job_is_accepted() -> None:
    admit(NOTHING_SET)
    admit(configured(strained(0)))


def test_under_strain_a_sheddable_type_is_refused_and_another_is_not() -> None:
    configuration = configured(strained(1))

    admit(configuration, a_job())
    with pytest.raises(SubmissionShedError) as refused:
        admit(configuration)
    assert (refused.value.type, refused.value.level) == ("test.extra", 1)
    assert refused.value.retry_after == timedelta(minutes=1)


def test_the_caller_waits_no_longer_than_the_strain() -> None:
    with pytest.raises(SubmissionShedError) as refused:
        admit(configured(strained(3, until=NOW + timedelta(seconds=20))))
    assert refused.value.retry_after == timedelta(seconds=20)
