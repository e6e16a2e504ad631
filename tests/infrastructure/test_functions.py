"""Each function has exactly the rights that it needs, and its own log group with a retention."""

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from shortener.names import VISITORS
from stacks.composition import ROOT
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, functions_by_key
from tests.support.builders import a_job
from tidemill.cdk.iam_actions import DESCRIBE_TABLE
from tidemill.dynamodb import document
from tidemill.dynamodb.payloads import Place
from tidemill.metrics import METRIC_NAMESPACE
from tidemill.names import (
    APP,
    ATTENTION_INDEX,
    BATCH_PACKAGE,
    CANARY_PACKAGE,
    CANARY_TENANT,
    EVENT_PACKAGE,
    EXPORTS_PREFIX,
    FLOW_PACKAGE,
    JOB_KEY,
    LISTING_INDEX,
    MIGRATION_PACKAGE,
    PAYLOADS_PREFIX,
    SCHEDULE_TENANT,
    Env,
    Lane,
    Output,
    Tag,
)

STREAM = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}
CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
}
PAYLOADS, EXPORTS = f"FilesBucket/{PAYLOADS_PREFIX}*", f"FilesBucket/{EXPORTS_PREFIX}*"
READ_SECRET = "secretsmanager:GetSecretValue"
QUEUES = {lane: f"Lane{lane}Queue" for lane in Lane}
#: The lanes whose submissions and workers send first messages at once.
HINTS = {("sqs:SendMessage", QUEUES[Lane.CRITICAL])}
DEAD_LETTER_QUEUES = {lane: f"Lane{lane}Letters" for lane in Lane}
#: Settings of a stage whose callers send tokens.
TOKENS = {"jwt_issuer": "https://issuer.example", "jwt_audience": "jobs"}
Rights = set[tuple[str, str]]
FILE_ACTIONS = ("GetObject", "PutObject", "DeleteObject")


def _of_jobs(*actions: str, index: str = "") -> Rights:
    table = "JobsTable" + (f"/index/{index}" if index else "")
    return {(f"dynamodb:{action}", table) for action in actions}


def _of_files(*actions: str, files: str = PAYLOADS) -> Rights:
    """No function may list the files: `DynamoPayloads` takes the 403 of S3 for a missing file."""
    return {(f"s3:{action}", files) for action in actions}


def _worker(lane: Lane) -> Rights:
    """The rights that every worker needs to run jobs."""
    return (
        _of_jobs("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem")
        | _of_jobs("Query", index=ATTENTION_INDEX)
        | {(action, QUEUES[lane]) for action in CONSUME}
        | _of_files(*FILE_ACTIONS)
    )


#: Further rights of the example's job types, which are on the bulk lane.
CLICK_ENRICH = {(f"dynamodb:{action}", "ShortenerClicksTable") for action in ("GetItem", "PutItem", "UpdateItem")}
CLICK_REPORTS = {("dynamodb:Query", "ShortenerClicksTable"), ("dynamodb:GetItem", "ShortenerLinksTable")}
CLICK_REPORTS |= _of_files(*FILE_ACTIONS, "AbortMultipartUpload", files=EXPORTS)
UNBOUND = ["cloudwatch:GetMetricStatistics", "cloudwatch:DescribeAlarms", "lambda:ListEventSourceMappings"]
TABLES = ("JobsTable", "ShortenerClicksTable", "ShortenerLinksTable")
#: All rights of each function except writing to its own log group: pairs of action and resource.
RIGHTS: dict[str, Rights] = {
    "submit": _of_jobs("GetItem", "BatchGetItem", "PutItem", "PartiQLInsert", "UpdateItem", "DeleteItem")
    | _of_files(*FILE_ACTIONS)
    | HINTS,
    "query": _of_jobs("GetItem", "BatchGetItem")
    | _of_jobs("Query", index=LISTING_INDEX)
    | _of_files("GetObject")
    | {(READ_SECRET, "CursorKey")},
    "control": _of_jobs("GetItem", "BatchGetItem", "PutItem", "UpdateItem") | _of_files("GetObject"),
    "publish": _of_jobs("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem")
    | {(action, "JobsTable/stream/*") for action in STREAM}
    | {("sqs:SendMessage", queue) for queue in (*QUEUES.values(), *DEAD_LETTER_QUEUES.values(), "PublisherFailures")}
    | _of_files(*FILE_ACTIONS),
    "wake": _of_jobs("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem")
    | _of_jobs("Query", index=ATTENTION_INDEX)
    | _of_files("DeleteObject"),
    "tick": _of_jobs("GetItem", "PutItem") | {("sqs:SendMessage", "Missed")},
    "canary": {("execute-api:Invoke", "POST /jobs")},
    "reconcile": _of_jobs("Scan", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem")
    | _of_jobs("Query", index=ATTENTION_INDEX)
    | {(action, queue) for action in CONSUME for queue in DEAD_LETTER_QUEUES.values()}
    | {("sqs:GetQueueAttributes", ":*")}
    | {("sqs:SendMessage", "Missed"), *((action, "*") for action in UNBOUND)}
    | {(f"cloudformation:{action}", "own stack") for action in ("DescribeStacks", "GetTemplate", "ListStackResources")}
    | {("lambda:GetEventSourceMapping", ":event-source-mapping:*")}
    | {(action, table) for action in DESCRIBE_TABLE for table in TABLES}
    | {("scheduler:GetSchedule", ":schedule/default/*")}
    | _of_files("DeleteObject"),
    "work-critical": _worker(Lane.CRITICAL) | HINTS,
    "work": _worker(Lane.DEFAULT),
    "work-bulk": _worker(Lane.BULK)
    | _of_jobs("Scan")
    | _of_jobs("Query", index=LISTING_INDEX)
    | CLICK_ENRICH
    | CLICK_REPORTS,
    "shorten": {("dynamodb:PutItem", "ShortenerLinksTable"), ("dynamodb:UpdateItem", "ShortenerLinksTable")},
    "redirect": {("dynamodb:GetItem", "ShortenerLinksTable"), (READ_SECRET, "ShortenerAddressKey")}
    | _of_jobs("GetItem", "PutItem", "DeleteItem"),
    "stats": {("dynamodb:GetItem", "ShortenerLinksTable")}
    | {(f"dynamodb:{action}", "ShortenerClicksTable") for action in ("GetItem", "Query")},
}
#: Wildcards that cannot be avoided: a log group's ARN ends in `:*`, because Lambda chooses the names of the streams.
WILDCARDS = {("logs:CreateLogStream", "own log group"), ("logs:PutLogEvents", "own log group")}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _statements(app: Synthesised, function: Resource) -> list[Any]:
    role = function["Role"]["Fn::GetAtt"][0]
    return [
        statement
        for _, policy in app.of_type("AWS::IAM::Policy")
        if {"Ref": role} in policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def _rights(app: Synthesised, function: Resource) -> set[tuple[str, str]]:
    return {
        (action, _target(resource, function))
        for statement in _statements(app, function)
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _target(resource: Any, function: Resource) -> str:  # noqa: PLR0911 - one return for each form of an ARN
    """The logical id of a resource without CDK's hash, and the suffix after its ARN."""
    if resource in ("*", {"Ref": "AWS::StackId"}):
        return "*" if resource == "*" else "own stack"
    if "Fn::Join" in resource and re.search(":(lambda|scheduler|sqs):", json.dumps(resource)):
        return str(resource["Fn::Join"][1][-1])
    if "Fn::Join" in resource and ":execute-api:" in json.dumps(resource):
        return str(resource["Fn::Join"][1][-1]).replace("/$default/", "", 1).replace("/", " /", 1)
    if "Fn::Join" in resource:
        whole, path = resource["Fn::Join"][1]
        return _target(whole, function) + str(path)
    if "Fn::ImportValue" in resource:
        # `ExportsOutputFnGetAtt<id>Arn<hash>`, or `ExportsOutputRef<id><hash>` for a secret; the id ends in a hash too.
        _, _, name = resource["Fn::ImportValue"].partition("ExportsOutput")
        name = name.removeprefix("Ref") if name.startswith("Ref") else name.removeprefix("FnGetAtt").replace("Arn", "")
        return str(name[:-16])
    id_, attribute = resource["Fn::GetAtt"] if "Fn::GetAtt" in resource else (resource["Ref"], "Arn")
    if {"Ref": id_} == function["LoggingConfig"]["LogGroup"]:
        return "own log group"
    return str(id_[:-8]) + ("" if attribute == "Arn" else f".{attribute}")


@pytest.mark.parametrize("verb", RIGHTS)
def test_a_function_has_exactly_the_rights_that_it_needs(dev: Synthesised, verb: str) -> None:
    assert _rights(dev, functions_by_key(dev)[verb]) == RIGHTS[verb] | WILDCARDS


def test_workers_may_update_by_statement_where_a_type_has_grouped_commit(synthesise: Synthesise) -> None:
    local = synthesise(stage="local")
    allowed = {
        key
        for key, function in functions_by_key(local).items()
        for statement in _statements(local, function)
        if "dynamodb:PartiQLUpdate" in _listed(statement["Action"])
    }
    assert allowed == {"work-critical", "work", "work-bulk"}


@pytest.mark.parametrize(
    ("verb", "tenant", "settings"),
    [("redirect", VISITORS, {}), ("tick", SCHEDULE_TENANT, {}), ("canary", CANARY_TENANT, TOKENS)],
)
def test_a_function_of_one_tenant_reaches_only_its_jobs_and_payloads(
    synthesise: Synthesise, verb: str, tenant: str, settings: dict[str, str]
) -> None:
    """The test evaluates `ForAllValues:StringLike` as IAM does, with the keys that the store writes."""
    app = synthesise(stage="dev", **settings)
    condition, *_ = [  # tick may also read the runtime configuration
        statement["Condition"]
        for statement in _statements(app, functions_by_key(app)[verb])
        if "JobsTable" in json.dumps(statement["Resource"]) and "index" not in json.dumps(statement["Resource"])
    ]
    assert condition.keys() == {"ForAllValues:StringLike", "Null"}
    assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}
    patterns = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]

    def allowed(key: str) -> bool:
        return any(fnmatchcase(key, pattern.replace("[", "[[]")) for pattern in patterns)

    job = a_job(tenant=tenant)
    assert allowed(document.key(job.tenant, job.id)[JOB_KEY]["S"])
    assert allowed(Place(tenant, job.id, "item/token").item_key[JOB_KEY]["S"])
    for other in ("111122223333:AROAEXAMPLE", f"{tenant}2", f"x{tenant}"):
        assert not allowed(document.key(other, job.id)[JOB_KEY]["S"])
        assert not allowed(Place(other, job.id, "item/token").item_key[JOB_KEY]["S"])


def test_where_callers_send_tokens_the_canary_needs_no_api(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", **TOKENS)
    canary = functions_by_key(app)["canary"]
    assert _rights(app, canary) == _of_jobs("GetItem", "PutItem") | WILDCARDS
    assert Env.API_URL not in canary["Environment"]["Variables"]
    assert canary["Environment"]["Variables"][Env.JOB_PACKAGES].split(",")[-5:] == [
        CANARY_PACKAGE,
        MIGRATION_PACKAGE,
        EVENT_PACKAGE,
        BATCH_PACKAGE,
        FLOW_PACKAGE,
    ]


def test_functions_of_several_tenants_have_no_condition(dev: Synthesised) -> None:
    for verb, function in functions_by_key(dev).items():
        conditions = [each for each in _statements(dev, function) if "Condition" in each]
        assert bool(conditions) == (verb in {"redirect", "tick", "reconcile"}), verb


def test_reconcile_reads_the_queues_of_its_own_stage_only(dev: Synthesised) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-abac.html."""
    (statement,) = (each for each in _statements(dev, functions_by_key(dev)["reconcile"]) if "Condition" in each)
    condition = {f"aws:ResourceTag/{Tag.APP}": APP, f"aws:ResourceTag/{Tag.STAGE}": "dev"}
    assert (statement["Action"], statement["Condition"]) == ("sqs:GetQueueAttributes", {"StringEquals": condition})


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_only_a_stage_that_asks_for_it_reserves_concurrency(synthesise: Synthesise, stage: str) -> None:
    """Lambda keeps 100 executions of an account unreserved, and a new account may have ten in all.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    """
    reserved = "ReservedConcurrentExecutions"
    assert not [verb for verb, each in functions_by_key(synthesise(stage=stage)).items() if reserved in each]
    chosen = functions_by_key(synthesise(stage=stage, open_concurrency="7"))
    assert {verb: each[reserved] for verb, each in chosen.items() if reserved in each} == {"redirect": 7}


def test_a_stage_can_withhold_the_text_of_exceptions(synthesise: Synthesise, dev: Synthesised) -> None:
    withheld = functions_by_key(synthesise(stage="dev", log_exception_text="off"))
    for function in withheld.values():
        assert function["Environment"]["Variables"][Env.WITHHOLD_EXCEPTION_TEXT] == "true"
    for function in functions_by_key(dev).values():
        assert Env.WITHHOLD_EXCEPTION_TEXT not in function["Environment"]["Variables"]


def test_a_stage_with_tracing_tells_each_function_and_adds_its_layer(synthesise: Synthesise, dev: Synthesised) -> None:
    layer = "arn:aws:lambda:eu-west-1:901920570463:layer:aws-otel-python-arm64-ver-1-32-0:2"
    for function in functions_by_key(synthesise(stage="dev", tracing="on", tracing_layer=layer)).values():
        assert function["Environment"]["Variables"][Env.TRACING] == "true"
        assert function["Layers"] == [layer]
    for function in functions_by_key(dev).values():
        assert Env.TRACING not in function["Environment"]["Variables"]
        assert "Layers" not in function


def test_the_rights_of_every_function_are_tested(dev: Synthesised) -> None:
    assert functions_by_key(dev).keys() == RIGHTS.keys()


def test_policies_have_wildcards_only_for_keys_many_names_and_calls_without_resources(
    dev: Synthesised,
) -> None:
    allowed = [{"Action": one, "Effect": "Allow", "Resource": "*"} for one in (UNBOUND[0], UNBOUND[1:])]
    for _, policy in dev.of_type("AWS::IAM::Policy"):
        # The keys of items in conditions end in a wildcard.
        rest = [each | {"Condition": None} for each in policy["PolicyDocument"]["Statement"] if each not in allowed]
        text = json.dumps(rest)
        for every in (":schedule/default/*", ":event-source-mapping:*", ":*"):
            text = text.replace(f'"{every}"', "")
        for prefix in (PAYLOADS_PREFIX, EXPORTS_PREFIX, "stream/"):
            text = text.replace(f'"/{prefix}*"', "")
        assert "*" not in text


def test_each_function_has_its_own_role_without_managed_policies(dev: Synthesised) -> None:
    roles = {
        id_: role
        for id_, role in dev.of_type("AWS::IAM::Role")
        if "lambda.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
    }
    used = [function["Role"]["Fn::GetAtt"][0] for function in functions_by_key(dev).values()]
    assert sorted(used) == sorted(roles)
    for role in roles.values():
        assert role.keys() == {"AssumeRolePolicyDocument", "Tags"}


def test_each_function_has_its_own_log_group_with_a_retention(dev: Synthesised) -> None:
    used = [function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions_by_key(dev).values()]
    assert len(set(used)) == len(used)
    for _, group in dev.of_type("AWS::Logs::LogGroup"):
        assert group["RetentionInDays"] == dev.config.log_retention_days


def test_functions_run_on_arm_with_the_runtime_of_the_stage(dev: Synthesised) -> None:
    for function in functions_by_key(dev).values():
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == f"python{dev.config.python_version}"


@pytest.mark.parametrize("worker", ["work-critical", "work", "work-bulk"])
def test_a_worker_times_out_after_its_jobs(dev: Synthesised, worker: str) -> None:
    function = functions_by_key(dev)[worker]
    assert float(function["Environment"]["Variables"][Env.JOB_TIMEOUT_SECONDS]) < function["Timeout"]


def test_every_function_logs_and_counts_under_its_own_service_name(dev: Synthesised) -> None:
    for key, function in functions_by_key(dev).items():
        verb = key.partition("-")[0]
        variables = function["Environment"]["Variables"]
        assert variables[Env.STAGE] == "dev"
        assert variables["POWERTOOLS_SERVICE_NAME"] == f"tidemill-{verb}"
        assert variables["POWERTOOLS_METRICS_NAMESPACE"] == METRIC_NAMESPACE


def test_every_function_knows_the_version_of_its_code(dev: Synthesised) -> None:
    versions = {function["Environment"]["Variables"][Env.CODE_VERSION] for function in functions_by_key(dev).values()}
    # The tests' stub of an asset is in a folder `asset0`.
    assert versions == {"asset0"}


def test_the_settings_of_logs_and_metrics_reach_the_functions(synthesise: Synthesise, dev: Synthesised) -> None:
    settings = {Env.LOG_SAMPLE_RATE: "0.25", Env.METRICS_BY_TYPE: "5"}
    set_ = functions_by_key(synthesise(stage="dev", log_sample_rate="0.25", metrics_by_type="5"))
    for key, function in set_.items():
        variables = function["Environment"]["Variables"]
        assert variables[Env.LOG_SAMPLE_RATE] == settings[Env.LOG_SAMPLE_RATE]
        assert variables.get(Env.METRICS_BY_TYPE) == (settings[Env.METRICS_BY_TYPE] if "work" in key else None)
    for function in functions_by_key(dev).values():
        assert not settings.keys() & function["Environment"]["Variables"].keys()


def test_the_handler_of_every_function_exists(dev: Synthesised) -> None:
    for function in functions_by_key(dev).values():
        module, _, name = function["Handler"].rpartition(".")
        folder = ROOT / "shared" if module.startswith("tidemill.") else ROOT
        assert f"def {name}(" in (folder / f"{module.replace('.', '/')}.py").read_text()


def test_demo_jobs_exist_only_in_the_local_stage(synthesise: Synthesise, dev: Synthesised) -> None:
    of_the_engine = "tidemill.canary,tidemill.migration,tidemill.fan_out,tidemill.batch,tidemill.flow"
    local = functions_by_key(synthesise(stage="local"))["submit"]["Environment"]["Variables"]
    assert local[Env.JOB_PACKAGES] == f"functions.jobs,functions.demo_jobs,{of_the_engine}"
    deployed = functions_by_key(dev)["submit"]["Environment"]["Variables"][Env.JOB_PACKAGES]
    assert deployed == f"functions.jobs,{of_the_engine}"


@pytest.mark.parametrize("output", [Output.FUNCTIONS, Output.LOG_GROUPS, Output.VERSIONS])
def test_the_outputs_list_every_function_by_its_key(dev: Synthesised, output: Output) -> None:
    listed = [json.dumps(template["Outputs"][output]["Value"]) for template in (dev.pipeline, dev.shortener)]
    for key in functions_by_key(dev):
        assert any(f'\\"{key}\\"' in text for text in listed), key


def test_without_listing_query_has_no_right_to_list_and_the_index_is_not_written(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", listing="off")
    functions = functions_by_key(app)
    listing = _of_jobs("Query", index=LISTING_INDEX) | {(READ_SECRET, "CursorKey")}
    assert _rights(app, functions["query"]) == (RIGHTS["query"] - listing) | WILDCARDS
    for key, variables in ((key, function["Environment"]["Variables"]) for key, function in functions.items()):
        assert variables.get(Env.LISTING, "") == "", key
