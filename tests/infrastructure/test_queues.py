"""No message is lost, seen by two workers for want of time, or sent in clear."""

import json
from datetime import UTC, datetime

import pytest

from shared.adapters import document
from shared.domain.dispatch import dispatch
from shared.domain.job import Job
from shared.domain.states import State
from shared.names import DISPATCHED_STATES, LARGEST_MAX_ATTEMPTS, STATE_ATTRIBUTE, Lane
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised

DAY_SECONDS = 24 * 60 * 60


def _queues(app: Synthesised) -> dict[str, Resource]:
    return dict(app.of_type("AWS::SQS::Queue"))


def _letters_of(queue: Resource) -> str:
    id_: str = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    return id_


def _mappings(app: Synthesised) -> dict[str, Resource]:
    return {
        mapping["EventSourceArn"]["Fn::GetAtt"][0]: mapping
        for _, mapping in app.of_type("AWS::Lambda::EventSourceMapping")
    }


def _function_behind(app: Synthesised, mapping: Resource) -> Resource:
    name = mapping["FunctionName"]
    return dict(app.of_type("AWS::Lambda::Function"))[name.get("Ref") or name["Fn::GetAtt"][0]]


def test_every_queue_has_a_dead_letter_queue_or_is_where_failures_end(dev: Synthesised) -> None:
    queues = _queues(dev)
    ends = {_letters_of(queue) for queue in queues.values() if "RedrivePolicy" in queue}
    ends |= {
        mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
        for mapping in _mappings(dev).values()
        if "DestinationConfig" in mapping
    }
    assert {id_ for id_, queue in queues.items() if "RedrivePolicy" not in queue} == ends


def test_letters_outlive_their_messages(dev: Synthesised) -> None:
    queues = _queues(dev)
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            letters = queues[_letters_of(queue)]
            assert queue["MessageRetentionPeriod"] < letters["MessageRetentionPeriod"] == 14 * DAY_SECONDS


def test_receives_cannot_kill_a_job(dev: Synthesised) -> None:
    for queue in _queues(dev).values():
        if "RedrivePolicy" in queue:
            assert queue["RedrivePolicy"]["maxReceiveCount"] >= 2 * LARGEST_MAX_ATTEMPTS + 10


def test_a_dead_letter_queue_is_open_to_its_own_queue_alone(dev: Synthesised) -> None:
    queues = _queues(dev)
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            allowed = queues[_letters_of(queue)]["RedriveAllowPolicy"]
            (source,) = allowed["sourceQueueArns"]
            assert allowed["redrivePermission"] == "byQueue"
            # The ARN ends in the very expression that the queue is named by.
            prefix, *name = queue["QueueName"]["Fn::Join"][1]
            assert source["Fn::Join"][1][-len(name) :] == name
            assert source["Fn::Join"][1][-len(name) - 1].endswith(f":{prefix}")


def test_other_queues_are_nobody_s_dead_letter_queue(dev: Synthesised) -> None:
    queues = _queues(dev)
    letters = {_letters_of(queue) for queue in queues.values() if "RedrivePolicy" in queue}
    for id_ in queues.keys() - letters:
        assert queues[id_]["RedriveAllowPolicy"] == {"redrivePermission": "denyAll"}


def test_every_queue_is_encrypted_and_refuses_what_is_not_tls(dev: Synthesised) -> None:
    queues = _queues(dev)
    refusing = {
        policy["Queues"][0]["Ref"]
        for _, policy in dev.of_type("AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert refusing == queues.keys()
    assert all(queue["SqsManagedSseEnabled"] for queue in queues.values())


@pytest.mark.parametrize("stage", ["local", "dev", "prod"])
def test_a_worker_keeps_its_messages_six_timeouts_long(synthesise: Synthesise, stage: str) -> None:
    app = synthesise(stage=stage)
    for id_, queue in _queues(app).items():
        if "RedrivePolicy" in queue:
            mapping = _mappings(app)[id_]
            timeout = _function_behind(app, mapping)["Timeout"]
            assert queue["VisibilityTimeout"] >= 6 * timeout + mapping["MaximumBatchingWindowInSeconds"]


def test_every_mapping_takes_partial_responses(dev: Synthesised) -> None:
    mappings = _mappings(dev)
    assert len(mappings) == 2
    for mapping in mappings.values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_workers_are_bounded_by_their_mapping(dev: Synthesised) -> None:
    for id_, queue in _queues(dev).items():
        if "RedrivePolicy" in queue:
            mapping = _mappings(dev)[id_]
            assert mapping["ScalingConfig"] == {"MaximumConcurrency": dev.config.lanes[0].max_concurrency}
            assert mapping["BatchSize"] == 10


def test_a_poison_record_does_not_block_the_stream(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["BisectBatchOnFunctionError"] is True
    # A batch must be halved down to one record with tries to spare.
    assert 2 ** stream["MaximumRetryAttempts"] > stream["BatchSize"]
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY_SECONDS
    assert stream["ParallelizationFactor"] == 1


def test_the_stream_is_filtered_by_the_states_that_are_dispatched(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    (only,) = stream["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {"dynamodb": {"NewImage": {"state": {"S": list(DISPATCHED_STATES)}}}}


@pytest.mark.parametrize("state", State)
def test_the_filter_lets_through_what_owes_a_message(state: State) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    job = Job(
        tenant="tenant",
        id="id",
        type="click.enrich",
        lane=Lane.DEFAULT,
        payload="{}",
        body_hash="",
        trace="",
        state=state,
        generation=1,
        attempt=0,
        created_at=now,
    )
    assert (dispatch(None, job, now=now) is not None) == (state in DISPATCHED_STATES)
    assert document.encode(job)[STATE_ATTRIBUTE] == {"S": state}
