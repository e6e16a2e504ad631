"""The scheduler calls wake, tick and reconcile in time, with minimal rights, and keeps missed calls."""

import json
from typing import Any

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, functions_by_key, verb_of
from tidemill.names import (
    CANARY_INTERVAL_SECONDS,
    CANARY_TENANT,
    CONFIGURATION_KEY,
    CONTINUE,
    RECONCILE_INTERVAL_SECONDS,
    SCHEDULED_TIME,
    WAKE_INTERVAL_SECONDS,
    Env,
)
from tidemill.system import job_type_loader

TOKENS = {"jwt_issuer": "https://issuer.example", "jwt_audience": "jobs"}


def _verb(app: Synthesised, function: str) -> str:
    return verb_of(dict(app.of_type("AWS::Lambda::Function"))[function])


def _schedules(app: Synthesised, verb: str) -> list[Resource]:
    return [
        schedule
        for _, schedule in app.of_type("AWS::Scheduler::Schedule")
        if _verb(app, app.behind(schedule["Target"]["Arn"])) == verb
    ]


def _event(schedule: Resource) -> Any:
    return json.loads(schedule["Target"]["Input"])


def _invocations(app: Synthesised, verb: str) -> Resource:
    (config,) = (
        config
        for _, config in app.of_type("AWS::Lambda::EventInvokeConfig")
        if _verb(app, config["FunctionName"]["Ref"]) == verb
    )
    return config


def test_every_schedule_calls_a_scheduled_function_without_a_flexible_window(dev: Synthesised) -> None:
    schedules = list(dev.of_type("AWS::Scheduler::Schedule"))
    assert len(schedules) == sum(len(_schedules(dev, verb)) for verb in ("wake", "reconcile", "tick", "canary"))
    for id_, schedule in schedules:
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule.get("State", "ENABLED") == "ENABLED"
        assert "Name" not in schedule, id_


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_wake_runs_every_minute_once_for_each_part(synthesise: Synthesise, stage: str) -> None:
    app = synthesise(stage=stage)
    parts = app.config.wake_parts
    schedules = _schedules(app, "wake")
    assert {wake["ScheduleExpression"] for wake in schedules} == {"rate(1 minute)"}
    assert [_event(wake) for wake in schedules] == [{"part": str(part), "parts": str(parts)} for part in range(parts)]
    assert WAKE_INTERVAL_SECONDS == 60


def test_wake_has_a_whole_processor(dev: Synthesised) -> None:
    memory = {verb_of(function): function["MemorySize"] for _, function in dev.of_type("AWS::Lambda::Function")}
    assert memory["wake"] == 1769


def test_reconcile_runs_every_five_minutes_and_continues_the_open_pass(dev: Synthesised) -> None:
    (reconcile,) = _schedules(dev, "reconcile")
    assert reconcile["ScheduleExpression"] == "rate(5 minutes)"
    assert RECONCILE_INTERVAL_SECONDS == 5 * 60
    assert _event(reconcile) == {CONTINUE: "true"}


def test_every_periodic_type_has_a_schedule_with_its_name_and_the_scheduled_time(dev: Synthesised) -> None:
    known = job_type_loader.load(dev.config.job_packages)
    ticks = {(tick["ScheduleExpression"], json.dumps(_event(tick))) for tick in _schedules(dev, "tick")}
    assert ticks == {
        (schedule, json.dumps({"type": name, "scheduled_at": SCHEDULED_TIME}))
        for name in known.names()
        if (schedule := known.get(name).schedule)
    }
    assert ticks


def test_a_schedule_may_only_call_its_function_and_keep_missed_calls(dev: Synthesised) -> None:
    roles = {
        id_: role
        for id_, role in dev.of_type("AWS::IAM::Role")
        if role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
    }
    assert len(roles) == 4
    for _, schedule in dev.of_type("AWS::Scheduler::Schedule"):
        id_ = schedule["Target"]["RoleArn"]["Fn::GetAtt"][0]
        (trust,) = roles[id_]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
        (policy,) = (policy for _, policy in dev.of_type("AWS::IAM::Policy") if {"Ref": id_} in policy["Roles"])
        rights = [(each["Action"], each["Resource"]) for each in policy["PolicyDocument"]["Statement"]]
        expected = [("lambda:InvokeFunction", schedule["Target"]["Arn"])]
        if "DeadLetterConfig" in schedule["Target"]:
            expected.append(("sqs:SendMessage", schedule["Target"]["DeadLetterConfig"]["Arn"]))
        assert rights == expected


@pytest.mark.parametrize("verb", ["tick", "reconcile"])
def test_a_call_that_must_not_be_missed_is_retried_for_a_day_and_then_kept(dev: Synthesised, verb: str) -> None:
    config = _invocations(dev, verb)
    assert config["MaximumRetryAttempts"] == 2
    missed_calls = config["DestinationConfig"]["OnFailure"]["Destination"]
    for schedule in _schedules(dev, verb):
        policy = schedule["Target"]["RetryPolicy"]
        assert policy == {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 24 * 60 * 60}
        assert schedule["Target"]["DeadLetterConfig"]["Arn"] == missed_calls


def test_a_call_of_wake_is_not_retried_because_the_next_one_follows(dev: Synthesised) -> None:
    config = _invocations(dev, "wake")
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (0, WAKE_INTERVAL_SECONDS)
    assert "DestinationConfig" not in config
    (schedule,) = _schedules(dev, "wake")
    assert schedule["Target"]["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    assert "DeadLetterConfig" not in schedule["Target"]


def test_wake_ends_before_its_next_call_and_reconcile_within_its_timeout(dev: Synthesised) -> None:
    timeouts = {verb_of(function): function["Timeout"] for _, function in dev.of_type("AWS::Lambda::Function")}
    assert timeouts["wake"] <= WAKE_INTERVAL_SECONDS
    assert timeouts["reconcile"] == dev.config.reconcile_timeout_seconds <= 900


def test_a_canary_goes_to_each_lane_every_minute(dev: Synthesised) -> None:
    (schedule,) = _schedules(dev, "canary")
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert CANARY_INTERVAL_SECONDS == 60
    assert _invocations(dev, "canary")["MaximumRetryAttempts"] == 0


@pytest.mark.parametrize("settings", [{}, TOKENS])
def test_submit_and_the_workers_know_the_tenant_of_the_canaries(
    synthesise: Synthesise, settings: dict[str, str]
) -> None:
    """It has no quota, and only its jobs count as canaries."""
    app = synthesise(stage="dev", **settings)
    keys = ("submit", "work-critical", "work", "work-bulk")
    tenant, *others = (functions_by_key(app)[key]["Environment"]["Variables"][Env.CANARY] for key in keys)
    assert others == [tenant] * 3
    if settings:
        assert tenant == CANARY_TENANT
        return
    role, _ = functions_by_key(app)["canary"]["Role"]["Fn::GetAtt"]
    assert tenant == {"Fn::Join": ["", [{"Ref": "AWS::AccountId"}, ":", {"Fn::GetAtt": [role, "RoleId"]}]]}


def test_a_stage_can_do_without_a_canary(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", canary="off")
    functions = [function for _, function in app.of_type("AWS::Lambda::Function")]
    assert "canary" not in {verb_of(function) for function in functions}
    assert not any("tidemill.canary" in json.dumps(function["Environment"]) for function in functions)
    assert not any(Env.CANARY in function["Environment"]["Variables"] for function in functions)


def test_tick_reads_the_runtime_configuration_and_cannot_change_it(dev: Synthesised) -> None:
    rights = {
        json.dumps(statement["Action"]): statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
        for name, policy in dev.of_type("AWS::IAM::Policy")
        if name.startswith("TickRole")
        for statement in policy["PolicyDocument"]["Statement"]
        if "ForAllValues:StringLike" in statement.get("Condition", {})
    }

    assert [action for action, keys in rights.items() if CONFIGURATION_KEY in keys] == ['"dynamodb:GetItem"']
