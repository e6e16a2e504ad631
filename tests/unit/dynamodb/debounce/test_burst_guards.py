"""A write of a burst for a job that has none, or no time, is a mistake of its caller, and names the job."""

from typing import Any

import pytest

from tests.support.builders import A_BURST, NOW, a_job, with_changes
from tidemill.domain.records import replace
from tidemill.dynamodb.debounce import debounce_writes
from tidemill.dynamodb.indexes import NOT_LISTED

JOB = a_job(burst=A_BURST)


def test_no_name_leads_to_a_job_without_a_burst() -> None:
    job = replace(JOB, burst=None)

    with pytest.raises(AssertionError, match=f"job {job.id} is not debounced"):
        debounce_writes.lead_to(job, after=None)


@pytest.mark.parametrize("changes", [{"due": None}, {"burst": None}], ids=str)
@pytest.mark.parametrize("before", [True, False])
def test_no_submission_joins_a_job_without_a_burst_or_a_time(changes: dict[str, Any], *, before: bool) -> None:
    lacking = with_changes(JOB, **changes)
    job, changed = (lacking, JOB) if before else (JOB, lacking)

    with pytest.raises(AssertionError, match=f"job {JOB.id} does not wait for a time"):
        debounce_writes.join(job, changed, by="b", now=NOW, replaces=False, indexes=NOT_LISTED)
