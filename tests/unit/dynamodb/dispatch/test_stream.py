"""What publish makes of stream records."""

import pytest

from tests.support.builders import a_job
from tidemill.aws.attribute_values import number
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch import stream
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, SCHEMA_VERSION, encode, key
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


@pytest.mark.parametrize("removed", [True, False])
def test_an_unreadable_record_names_the_payload_of_a_job_that_was_deleted(*, removed: bool) -> None:
    job = a_job(payload=None, payload_at="file/1")
    newer = encode(job) | {SCHEMA_ATTRIBUTE: number(SCHEMA_VERSION + 1)}
    change = {"SequenceNumber": "7", "Keys": key(job.tenant, job.id), "OldImage": newer}

    batch = stream.read({"Records": [{"dynamodb": change if removed else change | {"NewImage": newer}}]}, lanes=[*Lane])

    assert [each.payload_at for each in batch.unreadable] == ["file/1" if removed else None]
