"""Keys of jobs that look like those of events and of batches: their jobs are apart."""

from collections.abc import Callable

import pytest

from tests.support.builders import TENANT, a_job_type, fresh_token, types_of
from tests.support.single_job import Clock, Inline
from tidemill.application.features import submit_features
from tidemill.application.ports import JobStore
from tidemill.application.submission.job_ids import keyed_job_id, submitted_job_id
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.submission.submission import Submission

Post = Callable[..., Accepted]


@pytest.fixture
def post(store: JobStore, clock: Clock) -> Post:
    submit = submit_features.submit(
        store=store, payloads=Inline(), job_types=types_of(a_job_type()), clock=clock, new_id=lambda: "fresh"
    )

    def post(payload: dict[str, int], *, key: str) -> Accepted:
        return submit(Submission(type="test.job", payload=payload, key=key), tenant=TENANT, trace=fresh_token())

    return post


@pytest.mark.parametrize("key", ["event/order.placed/7", "batch/7"])
def test_the_key_of_a_caller_never_is_that_of_an_event_or_a_batch(post: Post, key: str) -> None:
    made = post({"n": 1}, key=key)

    assert made.job.id == submitted_job_id(TENANT, key) != keyed_job_id(TENANT, key)
    assert post({"n": 1}, key=key).replayed
