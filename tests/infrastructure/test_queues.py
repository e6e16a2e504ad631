"""Queues and mappings neither lose messages nor deliver them too early, and require TLS."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, functions_by_key
from tests.support.builders import A_BURST, with_changes
from tidemill.domain.dispatch.dispatch import dispatch
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.states import State
from tidemill.dynamodb import document
from tidemill.names import DISPATCHED_STATES, GROUP_STATES, LARGEST_MAX_ATTEMPTS, STATE_ATTRIBUTE, TERMINAL_STATES, Lane

DAY_SECONDS = 24 * 60 * 60
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _queues(app: Synthesised) -> dict[str, Resource]:
    return dict(app.of_type("AWS::SQS::Queue"))


def _dead_letter_queue_of(queue: Resource) -> str:
    id_: str = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    return id_


def _mappings(app: Synthesised) -> dict[str, Resource]:
    return {
        mapping["EventSourceArn"]["Fn::GetAtt"][0]: mapping
        for _, mapping in app.of_type("AWS::Lambda::EventSourceMapping")
    }


def _function_behind(app: Synthesised, mapping: Resource) -> Resource:
    return dict(app.of_type("AWS::Lambda::Function"))[app.behind(mapping["FunctionName"])]


def test_every_queue_has_a_dead_letter_queue_or_is_one(dev: Synthesised) -> None:
    queues = _queues(dev)
    last_stops = {_dead_letter_queue_of(queue) for queue in queues.values() if "RedrivePolicy" in queue}
    last_stops |= {
        mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
        for mapping in _mappings(dev).values()
        if "DestinationConfig" in mapping
    }
    last_stops |= {
        target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
        for _, schedule in dev.of_type("AWS::Scheduler::Schedule")
        if "DeadLetterConfig" in (target := schedule["Target"])
    }
    assert {id_ for id_, queue in queues.items() if "RedrivePolicy" not in queue} == last_stops


def test_dead_letter_messages_are_kept_longer_than_messages(dev: Synthesised) -> None:
    queues = _queues(dev)
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            dead_letters = queues[_dead_letter_queue_of(queue)]
            assert queue["MessageRetentionPeriod"] < dead_letters["MessageRetentionPeriod"] == 14 * DAY_SECONDS


def test_the_receives_of_all_attempts_do_not_end_a_job(dev: Synthesised) -> None:
    for queue in _queues(dev).values():
        if "RedrivePolicy" in queue:
            assert queue["RedrivePolicy"]["maxReceiveCount"] >= 2 * LARGEST_MAX_ATTEMPTS + 10


def test_a_dead_letter_queue_accepts_only_its_own_queue(dev: Synthesised) -> None:
    queues = _queues(dev)
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            allowed = queues[_dead_letter_queue_of(queue)]["RedriveAllowPolicy"]
            (source,) = allowed["sourceQueueArns"]
            assert allowed["redrivePermission"] == "byQueue"
            # The ARN ends in the expression that names the queue.
            prefix, *name = queue["QueueName"]["Fn::Join"][1]
            assert source["Fn::Join"][1][-len(name) :] == name
            assert source["Fn::Join"][1][-len(name) - 1].endswith(f":{prefix}")


def test_other_queues_refuse_to_be_a_dead_letter_queue(dev: Synthesised) -> None:
    queues = _queues(dev)
    dead_letters = {_dead_letter_queue_of(queue) for queue in queues.values() if "RedrivePolicy" in queue}
    for id_ in queues.keys() - dead_letters:
        assert queues[id_]["RedriveAllowPolicy"] == {"redrivePermission": "denyAll"}


def test_every_queue_is_encrypted_and_requires_tls(dev: Synthesised) -> None:
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
def test_the_visibility_timeout_is_six_function_timeouts(synthesise: Synthesise, stage: str) -> None:
    app = synthesise(stage=stage)
    for id_, queue in _queues(app).items():
        if "RedrivePolicy" in queue:
            mapping = _mappings(app)[id_]
            timeout = _function_behind(app, mapping)["Timeout"]
            assert queue["VisibilityTimeout"] >= 6 * timeout + mapping["MaximumBatchingWindowInSeconds"]


def test_every_mapping_accepts_partial_batch_responses(dev: Synthesised) -> None:
    mappings = _mappings(dev)
    assert len(mappings) == len(Lane) + 1
    for mapping in mappings.values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_mapping_limits_the_concurrency_of_workers(dev: Synthesised) -> None:
    mappings = _mappings(dev)
    for lane in dev.config.lanes:
        (mapping,) = (mapping for id_, mapping in mappings.items() if id_.startswith(f"Lane{lane.name}Queue"))
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": lane.max_concurrency}
        assert mapping["BatchSize"] == 10


def test_a_poison_record_does_not_block_the_stream(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["BisectBatchOnFunctionError"] is True
    # The retries suffice to halve a batch down to one record.
    assert 2 ** stream["MaximumRetryAttempts"] > stream["BatchSize"]
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY_SECONDS


def test_several_batches_of_a_stream_shard_run_at_once(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    assert stream["ParallelizationFactor"] == dev.config.stream_parallelization > 1


def _job(state: State, **changes: Any) -> Job:
    job = Job(
        tenant="tenant",
        id="id",
        type="click.enrich",
        lane=Lane.DEFAULT,
        payload=StoredPayload(text="{}"),
        body_hash="",
        trace="",
        state=state,
        generation=1,
        attempt=0,
        created_at=NOW,
    )
    return with_changes(job, **changes)


def _passes(app: Synthesised, before: Job | None, after: Job | None) -> bool:
    """Whether the mapping calls the function: one pattern must match, and `exists` tests leaves."""
    (stream,) = (mapping for mapping in _mappings(app).values() if "StartingPosition" in mapping)
    images = {
        name: document.encode(job) for name, job in (("OldImage", before), ("NewImage", after)) if job is not None
    }
    patterns = [json.loads(each["Pattern"]) for each in stream["FilterCriteria"]["Filters"]]
    return any(_matches(pattern, {"dynamodb": images}) for pattern in patterns)


def _matches(pattern: dict[str, Any], record: Any) -> bool:
    return isinstance(record, dict) and all(
        _matches(expected, record.get(name))
        if isinstance(expected, dict)
        else any(name in record if option == {"exists": True} else record.get(name) == option for option in expected)
        for name, expected in pattern.items()
    )


def test_the_stream_filter_stays_within_the_limits_of_a_mapping(dev: Synthesised) -> None:
    (stream,) = (mapping for mapping in _mappings(dev).values() if "StartingPosition" in mapping)
    filters = [json.loads(each["Pattern"]) for each in stream["FilterCriteria"]["Filters"]]
    # https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
    assert len(filters) <= 5
    assert {key for each in filters for key in each} == {"dynamodb"}


@pytest.mark.parametrize("state", State)
def test_the_filter_passes_every_job_that_needs_a_message(dev: Synthesised, state: State) -> None:
    job = _job(state)
    assert (dispatch(None, job, now=NOW) is not None) == (state in DISPATCHED_STATES) == _passes(dev, None, job)
    assert document.encode(job)[STATE_ATTRIBUTE] == {"S": state}


@pytest.mark.parametrize("state", State)
def test_the_filter_passes_every_end_and_wait_of_a_job_of_a_group(dev: Synthesised, state: State) -> None:
    assert _passes(dev, _job(State.RUNNING, group="g"), _job(state, group="g")) == (
        state.terminal or state in DISPATCHED_STATES or state is State.WAITING
    )


@pytest.mark.parametrize("state", State)
def test_the_filter_passes_the_deletion_of_a_job_with_a_stored_payload(dev: Synthesised, state: State) -> None:
    deleted = _job(state, payload_at="item/1")
    assert _passes(dev, deleted, None) == state.terminal
    # The payload of this job is in its document.
    assert not _passes(dev, _job(state), None)


@pytest.mark.parametrize("state", State)
def test_the_filter_passes_the_deletion_of_a_dead_job_that_blocks_its_group(dev: Synthesised, state: State) -> None:
    assert _passes(dev, _job(state, group="g", blocks=True), None) == (state is State.DEAD)
    assert not _passes(dev, _job(state, group="g"), None)
    assert not _passes(dev, _job(state, blocks=True), None)


@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED])
def test_the_filter_passes_every_state_in_which_a_payload_may_have_been_replaced(
    dev: Synthesised, state: State
) -> None:
    before = _job(State.QUEUED, payload_at="item/1", burst=A_BURST)
    assert _passes(dev, before, _job(state, payload_at="item/2", burst=A_BURST))


def test_a_stored_payload_costs_no_call_before_its_job_is_deleted(dev: Synthesised) -> None:
    queued, running, done = (
        _job(state, payload_at="item/1") for state in (State.QUEUED, State.RUNNING, State.SUCCEEDED)
    )
    assert not _passes(dev, queued, running)
    assert not _passes(dev, running, done)


def test_the_states_in_the_filter_are_those_of_the_domain() -> None:
    assert set(TERMINAL_STATES) == {state for state in State if state.terminal}
    assert set(GROUP_STATES) - {"waiting"} == set(TERMINAL_STATES) - set(DISPATCHED_STATES)


def test_lambda_lets_only_workers_with_first_messages_send_to_their_own_queue(dev: Synthesised) -> None:
    """Otherwise it stops a chain of about 16 runs: https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html."""
    loops = {key: each.get("RecursiveLoop") for key, each in functions_by_key(dev).items()}

    assert loops == {key: "Allow" if key == "work-critical" else None for key in loops}
