"""No message is lost, seen by two workers for want of time, or sent in clear."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised
from tidemill.domain.dispatch import dispatch
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb import document
from tidemill.names import DISPATCHED_STATES, ENDED_STATES, LARGEST_MAX_ATTEMPTS, STATE_ATTRIBUTE, TERMINAL_STATES, Lane

DAY_SECONDS = 24 * 60 * 60
NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
    ends |= {
        target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
        for _, schedule in dev.of_type("AWS::Scheduler::Schedule")
        if "DeadLetterConfig" in (target := schedule["Target"])
    }
    assert {id_ for id_, queue in queues.items() if "RedrivePolicy" not in queue} == ends


def test_letters_outlive_their_messages(dev: Synthesised) -> None:
    queues = _queues(dev)
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            dead_letters = queues[_letters_of(queue)]
            assert queue["MessageRetentionPeriod"] < dead_letters["MessageRetentionPeriod"] == 14 * DAY_SECONDS


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
    dead_letters = {_letters_of(queue) for queue in queues.values() if "RedrivePolicy" in queue}
    for id_ in queues.keys() - dead_letters:
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
    assert len(mappings) == len(Lane) + 1
    for mapping in mappings.values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_workers_are_bounded_by_their_mapping(dev: Synthesised) -> None:
    mappings = _mappings(dev)
    for lane in dev.config.lanes:
        (mapping,) = (mapping for id_, mapping in mappings.items() if id_.startswith(f"Lane{lane.name}Queue"))
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": lane.max_concurrency}
        assert mapping["BatchSize"] == 10


def test_a_poison_record_does_not_block_the_stream(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["BisectBatchOnFunctionError"] is True
    # A batch must be halved down to one record with tries to spare.
    assert 2 ** stream["MaximumRetryAttempts"] > stream["BatchSize"]
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY_SECONDS
    assert stream["ParallelizationFactor"] == 1


def _job(state: State, **changes: Any) -> Job:
    return Job(
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
        created_at=NOW,
        **changes,
    )


def _passes(app: Synthesised, before: Job | None, after: Job | None) -> bool:
    """Whether the mapping calls the function: patterns are alternatives, and `exists` is asked of leaves."""
    (stream,) = (mapping for mapping in _mappings(app).values() if "StartingPosition" in mapping)
    images = {
        name: document.encode(job) for name, job in (("OldImage", before), ("NewImage", after)) if job is not None
    }
    patterns = [json.loads(each["Pattern"]) for each in stream["FilterCriteria"]["Filters"]]
    return any(_matches(pattern, {"dynamodb": images}) for pattern in patterns)


def _matches(pattern: dict[str, Any], record: Any) -> bool:
    return isinstance(record, dict) and all(
        _matches(asked, record.get(name))
        if isinstance(asked, dict)
        else any(name in record if option == {"exists": True} else record.get(name) == option for option in asked)
        for name, asked in pattern.items()
    )


def test_the_stream_is_asked_for_no_more_than_a_mapping_may_be(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    filters = [json.loads(each["Pattern"]) for each in stream["FilterCriteria"]["Filters"]]
    # https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
    assert len(filters) <= 5
    assert {key for each in filters for key in each} == {"dynamodb"}


@pytest.mark.parametrize("state", State)
def test_the_filter_lets_through_what_owes_a_message(dev: Synthesised, state: State) -> None:
    job = _job(state)
    assert (dispatch(None, job, now=NOW) is not None) == (state in DISPATCHED_STATES) == _passes(dev, None, job)
    assert document.encode(job)[STATE_ATTRIBUTE] == {"S": state}


@pytest.mark.parametrize("state", State)
def test_the_filter_lets_through_every_end_of_a_job_of_a_group(dev: Synthesised, state: State) -> None:
    assert _passes(dev, _job(State.RUNNING, group="g"), _job(state, group="g")) == (
        state.terminal or state in DISPATCHED_STATES
    )


@pytest.mark.parametrize("state", State)
def test_the_filter_lets_through_the_end_of_a_job_whose_payload_is_stored_elsewhere(
    dev: Synthesised, state: State
) -> None:
    gone = _job(state, payload_at="item/1")
    assert _passes(dev, gone, None) == state.terminal
    # Only such a job is ever removed.
    assert not _passes(dev, _job(state), None)


def test_a_large_payload_costs_no_call_while_its_job_lives(dev: Synthesised) -> None:
    queued, running, done = (
        _job(state, payload_at="item/1") for state in (State.QUEUED, State.RUNNING, State.SUCCEEDED)
    )
    assert not _passes(dev, queued, running)
    assert not _passes(dev, running, done)


def test_the_states_in_the_filter_are_those_of_the_protocol() -> None:
    assert set(TERMINAL_STATES) == {state for state in State if state.terminal}
    assert set(ENDED_STATES) == set(TERMINAL_STATES) - set(DISPATCHED_STATES)
