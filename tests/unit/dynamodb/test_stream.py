"""What publish makes of stream records."""

import pytest

from tests.support.builders import a_job
from tidemill.domain.states import State
from tidemill.dynamodb import stream
from tidemill.dynamodb.document import encode, key
from tidemill.names import DISPATCHED_STATES, Lane


@pytest.mark.parametrize("state", State)
def test_only_a_job_that_needs_a_message_must_have_a_lane_of_this_stage(state: State) -> None:
    """The others have work that no lane is needed for, such as the next job of their group."""
    job = a_job(state=state, lane=Lane.BULK)
    change = {"SequenceNumber": "7", "Keys": key(job.tenant, job.id), "NewImage": encode(job)}

    batch = stream.read({"Records": [{"dynamodb": change}]}, lanes={Lane.DEFAULT, Lane.CRITICAL})

    needs_a_message = state in DISPATCHED_STATES
    assert [unreadable.job_id for unreadable in batch.unreadable] == [job.id] * needs_a_message
    assert [change.after for change in batch.changes] == [job] * (not needs_a_message)
