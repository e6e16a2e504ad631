"""While new jobs are refused, a repeated submission still finds its job."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import SECOND, TENANT, a_job_type, types_of
from tests.support.single_job import Clock, Inline
from tidemill.application.features import submit_features
from tidemill.application.ports import JobStore
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission, Unique

DAY = timedelta(days=1)
TYPES = types_of(a_job_type())


@pytest.mark.parametrize("asked", [{"key": "k"}, {"unique": Unique(period=DAY)}])
def test_a_job_that_was_accepted_is_found_with_one_read_while_new_ones_are_refused(
    store: JobStore, clock: Clock, asked: dict[str, Any]
) -> None:
    submission = Submission(type="test.job", payload={"n": 1}, **asked)
    accepting = submit_features.submit(
        store=store, payloads=Inline(), job_types=TYPES, clock=clock, new_id=lambda: "first"
    )
    first = accepting(submission, tenant=TENANT, trace="t")
    reads: list[str] = []

    class Counted:
        def get(self, tenant: str, job_id: str) -> Job | None:
            reads.append(job_id)
            return store.get(tenant, job_id)

    def refuse(job: Job) -> Job:
        raise SubmissionShedError(job.type, level=1, retry_after=SECOND)

    submit = submit_features.submit(
        store=Counted(),  # type: ignore[arg-type]  # the part that it uses
        payloads=Inline(),
        job_types=TYPES,
        clock=clock,
        new_id=lambda: "new",
        admit=refuse,
    )

    again = submit(submission, tenant=TENANT, trace="u")

    assert (again.job.id, again.replayed, reads) == (first.job.id, True, [first.job.id])
    with pytest.raises(SubmissionShedError):
        submit(Submission(type="test.job", payload={"n": 1}), tenant=TENANT, trace="t")
    assert len(reads) == 1
    with pytest.raises(SubmissionShedError):
        submit(Submission(type="test.job", payload={"n": 1}, key="never"), tenant=TENANT, trace="t")
