"""Each function may do what it must and nothing else, and its logs are its own and end."""

import json
from typing import Any

import pytest

from shared.names import METRIC_NAMESPACE, Env
from stacks.asset import ROOT
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised

STREAM = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}
#: All that each function may do beside writing to its own log group: action and what is acted on.
RIGHTS = {
    "submit": {("dynamodb:PutItem", "JobsTable")},
    "query": {("dynamodb:GetItem", "JobsTable")},
    "publish": {(action, "JobsTable.StreamArn") for action in STREAM}
    | {("sqs:SendMessage", queue) for queue in ("LanedefaultQueue", "LanedefaultLetters", "PublisherFailures")},
    "work": {("dynamodb:UpdateItem", "JobsTable")}
    | {(f"dynamodb:{action}", "ShortenerClicksTable") for action in ("GetItem", "PutItem", "UpdateItem")}
    | {
        (f"sqs:{action}", "LanedefaultQueue")
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
    }
    | {("secretsmanager:GetSecretValue", "ShortenerAddressKey")},
    "shorten": {("dynamodb:PutItem", "ShortenerLinksTable")},
    "redirect": {("dynamodb:GetItem", "ShortenerLinksTable"), ("dynamodb:PutItem", "JobsTable")},
    "stats": {("dynamodb:GetItem", "ShortenerLinksTable"), ("dynamodb:Query", "ShortenerClicksTable")},
}
#: The wildcards that cannot be avoided. A log group's ARN ends in `:*`, for the streams that Lambda names.
WILDCARDS = {("logs:CreateLogStream", "own log group"), ("logs:PutLogEvents", "own log group")}


def _functions(app: Synthesised) -> dict[str, Resource]:
    return {function["Handler"].split(".")[1]: function for _, function in app.of_type("AWS::Lambda::Function")}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _rights(app: Synthesised, function: Resource) -> set[tuple[str, str]]:
    role = function["Role"]["Fn::GetAtt"][0]
    return {
        (action, _target(resource, function))
        for _, policy in app.of_type("AWS::IAM::Policy")
        if {"Ref": role} in policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _target(resource: Resource, function: Resource) -> str:
    """A resource by its logical id without the hash that CDK appends."""
    if "Fn::ImportValue" in resource:
        _, _, name = resource["Fn::ImportValue"].partition("ExportsOutputFnGetAtt")
        return str(name[: -len("Arn") - 16])
    id_, attribute = resource["Fn::GetAtt"] if "Fn::GetAtt" in resource else (resource["Ref"], "Arn")
    if {"Ref": id_} == function["LoggingConfig"]["LogGroup"]:
        return "own log group"
    return str(id_[:-8]) + ("" if attribute == "Arn" else f".{attribute}")


@pytest.mark.parametrize("verb", RIGHTS)
def test_a_function_may_do_what_it_must_and_nothing_else(dev: Synthesised, verb: str) -> None:
    assert _rights(dev, _functions(dev)[verb]) == RIGHTS[verb] | WILDCARDS


def test_every_function_is_looked_at(dev: Synthesised) -> None:
    assert _functions(dev).keys() == RIGHTS.keys()


def test_no_policy_holds_a_wildcard_beyond_the_listed_ones(dev: Synthesised) -> None:
    for _, policy in dev.of_type("AWS::IAM::Policy"):
        assert "*" not in json.dumps(policy)


def test_roles_are_each_function_s_own_and_without_managed_policies(dev: Synthesised) -> None:
    roles = dict(dev.of_type("AWS::IAM::Role"))
    used = [function["Role"]["Fn::GetAtt"][0] for function in _functions(dev).values()]
    assert sorted(used) == sorted(roles)
    for role in roles.values():
        assert role.keys() == {"AssumeRolePolicyDocument", "Tags"}


def test_log_groups_are_each_function_s_own_and_end(dev: Synthesised) -> None:
    used = [function["LoggingConfig"]["LogGroup"]["Ref"] for function in _functions(dev).values()]
    assert len(set(used)) == len(used)
    for _, group in dev.of_type("AWS::Logs::LogGroup"):
        assert group["RetentionInDays"] == dev.config.log_retention_days


def test_functions_run_on_arm_with_the_runtime_that_is_set(dev: Synthesised) -> None:
    for function in _functions(dev).values():
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == f"python{dev.config.python_version}"


def test_a_worker_times_out_after_its_jobs(dev: Synthesised) -> None:
    worker = _functions(dev)["work"]
    assert float(worker["Environment"]["Variables"][Env.JOB_TIMEOUT_SECONDS]) < worker["Timeout"]


def test_every_function_says_who_it_is(dev: Synthesised) -> None:
    for verb, function in _functions(dev).items():
        variables = function["Environment"]["Variables"]
        assert variables[Env.STAGE] == "dev"
        assert variables["POWERTOOLS_SERVICE_NAME"] == f"millrace-{verb}"
        assert variables["POWERTOOLS_METRICS_NAMESPACE"] == METRIC_NAMESPACE


def test_every_handler_is_where_the_function_looks_for_it(dev: Synthesised) -> None:
    for function in _functions(dev).values():
        module, _, name = function["Handler"].rpartition(".")
        assert f"def {name}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text()


def test_job_types_of_the_demo_are_local(synthesise: Synthesise, dev: Synthesised) -> None:
    local = _functions(synthesise(stage="local"))["submit"]["Environment"]["Variables"]
    assert local[Env.JOB_PACKAGES] == "functions.jobs,functions.demo_jobs"
    assert _functions(dev)["submit"]["Environment"]["Variables"][Env.JOB_PACKAGES] == "functions.jobs"
