"""The constructs of sources and of the sink: queues, rights, retries and alarms; and faults of a synthesis."""

import fnmatch
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from stacks.application import Application
from stacks.composition import ROOT
from stacks.stages import STAGES
from tests.support.document_blocks import code_of
from tests.support.documented_job_types import job_types_of
from tests.support.stub_asset import stub_asset
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.job_types import JobTypes
from tidemill.cdk.alarms.alarm import Heading
from tidemill.cdk.events.bus_sink import BusSink
from tidemill.cdk.events.event_source import TRIES
from tidemill.cdk.events.eventbridge_source import EventBridgeSource
from tidemill.cdk.events.s3_source import S3Source
from tidemill.cdk.events.sns_source import SnsSource
from tidemill.cdk.events.table_source import TableSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.job_manifest import SourceError
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.names import JOB_KEY, Env, Lane
from tidemill.system.event_checks import require_consumers, require_sources

Resources = dict[str, dict[str, Any]]
_CODE: Final = """
from pydantic import BaseModel
from tidemill import EventBridgeRecord, S3Record, SnsRecord, TableRecord, event_source, event_type
import tidemill
fact = event_type("fact.happened", data=type("Fact", (BaseModel,), {}))


@event_source("payments", publishes="fact.happened")
def payments(record: EventBridgeRecord) -> dict: ...


@tidemill.event_source("uploads", publishes="fact.happened")
def uploads(record: "S3Record") -> dict: ...


@event_source("topic", publishes="fact.happened")
def topic(record: SnsRecord) -> dict: ...


@event_source("items", publishes="fact.happened")
def items(record: TableRecord) -> dict: ...
"""


class Synthesis:
    """An app with a pipeline, and a stack for its sources."""

    def __init__(self, folder: Path, code: str = _CODE, *, id_: str = "Default", metrics_by_type: int = 0) -> None:
        jobs = folder / "functions" / "jobs"
        jobs.mkdir(parents=True)
        (jobs / "__init__.py").touch()
        (jobs / "facts.py").write_text(code)
        asset = stub_asset(folder / "asset", root=folder)
        self.app = App(outdir=str(folder / "cdk.out"), analytics_reporting=False)
        config = replace(STAGES["dev"](), metrics_by_type=metrics_by_type)
        self.pipeline = Pipeline(Stack(self.app, "Pipeline"), id_, config=config, asset=asset)
        self.stack = Stack(self.app, "Sources")
        self.functions = FunctionFactory(self.stack, config=config, asset=asset)

    def resources(self, stack: str = "Sources") -> Resources:
        template = json.loads((Path(self.app.synth().directory) / f"{stack}.template.json").read_text())
        found: Resources = template["Resources"]
        return found


@pytest.fixture
def synthesis(tmp_path: Path) -> Synthesis:
    return Synthesis(tmp_path)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Resources:
    synthesis = Synthesis(tmp_path_factory.mktemp("sources"))
    stack, functions = synthesis.stack, synthesis.functions
    given: Any = {"pipeline": synthesis.pipeline, "tenant": "shop"}
    pattern = events.EventPattern(source=["com.example.pay"])
    EventBridgeSource(functions, "payments", pattern=pattern, bus=events.EventBus(stack, "Bus"), **given)
    S3Source(functions, "uploads", bucket=s3.Bucket(stack, "Bucket"), prefix="in/", **given)
    SnsSource(functions, "topic", topic=sns.Topic(stack, "Topic"), **given)
    key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
    view = dynamodb.StreamViewType.NEW_AND_OLD_IMAGES
    table = dynamodb.Table(stack, "Items", partition_key=key, stream=view)
    TableSource(functions, "items", table=table, **given)
    return synthesis.resources()


def of_type(resources: Resources, kind: str, source: str = "") -> dict[str, dict[str, Any]]:
    return {
        id_: each["Properties"]
        for id_, each in resources.items()
        if each["Type"] == f"AWS::{kind}" and id_.startswith(f"Source{source}")
    }


@pytest.mark.parametrize("source", ["payments", "uploads", "topic", "items"])
def test_a_message_is_tried_some_times_and_then_set_aside(everything: Resources, source: str) -> None:
    queues = of_type(everything, "SQS::Queue", source)
    (queue,) = [each for id_, each in queues.items() if "DeadLetters" not in id_]
    (mapping,) = [
        each
        for each in of_type(everything, "Lambda::EventSourceMapping", source).values()
        if "Queue" in json.dumps(each["EventSourceArn"])
    ]
    (function,) = of_type(everything, "Lambda::Function", source).values()

    assert queue["RedrivePolicy"]["maxReceiveCount"] == TRIES
    assert "DeadLetters" in json.dumps(queue["RedrivePolicy"]["deadLetterTargetArn"])
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert function["Handler"] == "tidemill.entrypoints.source.handle"
    variables = function["Environment"]["Variables"]
    assert (variables[Env.SOURCE], variables[Env.SOURCE_TENANT]) == (source, "shop")
    assert variables[Env.JOB_PACKAGES].startswith("functions.jobs,")


@pytest.mark.parametrize("source", ["payments", "uploads", "topic", "items"])
def test_a_source_may_write_only_jobs_of_its_tenant(everything: Resources, source: str) -> None:
    policies = of_type(everything, "IAM::Policy", source)
    statements = [one for each in policies.values() for one in each["PolicyDocument"]["Statement"]]
    of_jobs = [one for one in statements if "dynamodb:PutItem" in one["Action"]]

    (statement,) = of_jobs
    assert set(statement["Action"]) == {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"}
    keys = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    assert keys == ["shop#*", '!payload#["shop",*']
    assert not [one for one in statements if one["Resource"] == "*"]


@pytest.mark.parametrize("source", ["payments", "uploads", "topic", "items"])
def test_a_source_may_owe_only_the_deletions_of_payloads_of_its_tenant(everything: Resources, source: str) -> None:
    policies = of_type(everything, "IAM::Policy", source)
    statements = [one for each in policies.values() for one in each["PolicyDocument"]["Statement"]]

    (statement,) = (one for one in statements if "dynamodb:UpdateItem" in one["Action"])
    (pattern,) = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    assert statement["Action"] == "dynamodb:UpdateItem"
    assert statement["Condition"]["Null"] == {"dynamodb:LeadingKeys": "false"}
    tenants = ("shop", "shop2")
    works = [Work(kind=Kind.DELETE_PAYLOAD, tenant=of, name="job", payload_at="file/token") for of in tenants]
    keys = [owed_key(work)[JOB_KEY]["S"] for work in (*works, Work(kind=Kind.DISPATCH, tenant="shop", name="job"))]
    assert fnmatch.filter(keys, pattern.replace("[", "[[]")) == keys[:1]


@pytest.mark.parametrize("source", ["payments", "uploads", "topic", "items"])
def test_alarms_watch_a_source(everything: Resources, source: str) -> None:
    alarms = of_type(everything, "CloudWatch::Alarm", source)

    names = {re.sub(r"^Source[a-z]+(\w+?)[0-9A-F]{8}$", r"\1", id_) for id_ in alarms}
    late = {"LateChanges"} if source == "items" else set()
    assert {"RefusedRecords", "LateSource"} | late <= names
    described = [each["AlarmDescription"] for id_, each in alarms.items() if "Refused" in id_ or "Late" in id_]
    assert all(f"#{Heading.EVENT_SOURCE}" in each for each in described)


def test_eventbridge_retries_for_a_day_and_then_keeps_the_event(everything: Resources) -> None:
    (rule,) = of_type(everything, "Events::Rule").values()
    (target,) = rule["Targets"]

    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
    assert "DeadLetters" in json.dumps(target["DeadLetterConfig"])
    assert rule["EventPattern"] == {"source": ["com.example.pay"]}


def test_only_the_service_of_a_source_may_send_to_its_queue(everything: Resources) -> None:
    def senders(source: str) -> list[tuple[str, Any]]:
        policies = of_type(everything, "SQS::QueuePolicy", source)
        statements = [one for each in policies.values() for one in each["PolicyDocument"]["Statement"]]
        return [(one["Principal"]["Service"], one["Condition"]) for one in statements if one["Effect"] == "Allow"]

    assert {service for service, _ in senders("payments")} == {"events.amazonaws.com"}
    assert all("Rule" in json.dumps(condition["ArnEquals"]) for _, condition in senders("payments"))
    ((service, condition),) = senders("uploads")
    assert (service, condition["StringEquals"]) == (
        "s3.amazonaws.com",
        {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
    )
    assert [service for service, _ in senders("topic")] == ["sns.amazonaws.com"] * 2, "its queue, and dead letters"
    assert all("Topic" in json.dumps(condition["ArnEquals"]["aws:SourceArn"]) for _, condition in senders("topic"))
    assert senders("items") == []


def test_the_bucket_notifies_the_queue_that_lets_it(everything: Resources) -> None:
    (bucket,) = [each for each in everything.values() if each["Type"] == "AWS::S3::Bucket"]
    (notification,) = bucket["Properties"]["NotificationConfiguration"]["QueueConfigurations"]

    assert notification["Event"] == "s3:ObjectCreated:*"
    assert notification["Filter"]["S3Key"]["Rules"] == [{"Name": "prefix", "Value": "in/"}]
    assert any("QueuePolicy" in each for each in bucket["DependsOn"])


def test_notifications_that_the_bucket_has_are_kept(synthesis: Synthesis) -> None:
    bucket = s3.Bucket(synthesis.stack, "Bucket")
    own = s3.CfnBucket.QueueConfigurationProperty(event="s3:ObjectRemoved:*", queue="arn:aws:sqs:::own")
    topic = s3.CfnBucket.TopicConfigurationProperty(event="s3:ObjectRestore:*", topic="arn:aws:sns:::own")
    resource: Any = bucket.node.default_child
    resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        queue_configurations=[own],
        topic_configurations=[topic],
        event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True),
    )
    S3Source(synthesis.functions, "uploads", pipeline=synthesis.pipeline, tenant="shop", bucket=bucket)

    (found,) = [each for each in synthesis.resources().values() if each["Type"] == "AWS::S3::Bucket"]
    notifications = found["Properties"]["NotificationConfiguration"]
    sent = [each["Event"] for each in notifications["QueueConfigurations"]]
    assert sent == ["s3:ObjectRemoved:*", "s3:ObjectCreated:*"]
    assert [each["Event"] for each in notifications["TopicConfigurations"]] == ["s3:ObjectRestore:*"]
    assert notifications["EventBridgeConfiguration"] == {"EventBridgeEnabled": True}


@pytest.mark.parametrize("earlier", [True, False])
def test_a_bucket_whose_notifications_cdk_writes_is_refused(synthesis: Synthesis, earlier: bool) -> None:
    """Its custom resource replaces those of the bucket, so the source would get nothing."""
    bucket = s3.Bucket(synthesis.stack, "Bucket", event_bridge_enabled=earlier)
    S3Source(synthesis.functions, "uploads", pipeline=synthesis.pipeline, tenant="shop", bucket=bucket)
    if not earlier:
        bucket.enable_event_bridge_notification()

    with pytest.raises(RuntimeError, match="would remove the notification of the source"):
        synthesis.app.synth()


def test_a_topic_delivers_with_its_envelope_and_keeps_what_it_cannot_deliver(everything: Resources) -> None:
    (subscription,) = of_type(everything, "SNS::Subscription").values()

    assert subscription["RawMessageDelivery"] is False
    assert "DeadLetters" in json.dumps(subscription["RedrivePolicy"])


def test_a_stream_cannot_be_held_up_for_ever(everything: Resources) -> None:
    (mapping,) = [
        each
        for each in of_type(everything, "Lambda::EventSourceMapping", "items").values()
        if "StreamArn" in json.dumps(each["EventSourceArn"])
    ]

    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] < 10_000
    assert 0 < mapping["MaximumRecordAgeInSeconds"] < 86_400
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "DeadLetters" in json.dumps(mapping["DestinationConfig"]["OnFailure"])


def test_the_name_of_a_source_may_have_dashes(tmp_path: Path) -> None:
    synthesis = Synthesis(tmp_path, _CODE.replace('"topic"', '"user-uploads"'))
    topic = sns.Topic(synthesis.stack, "Topic")

    SnsSource(synthesis.functions, "user-uploads", topic=topic, pipeline=synthesis.pipeline, tenant="shop")

    assert "FILL(user_uploads, 0)" in json.dumps(synthesis.resources())


def test_a_source_without_its_function_is_refused(synthesis: Synthesis) -> None:
    with pytest.raises(SourceError, match=r"'lost', …\); known sources: items, payments"):
        SnsSource(
            synthesis.functions,
            "lost",
            pipeline=synthesis.pipeline,
            tenant="shop",
            topic=sns.Topic(synthesis.stack, "Topic"),
        )


def test_a_function_of_another_kind_of_record_is_refused_with_its_place(synthesis: Synthesis) -> None:
    with pytest.raises(SourceError, match=r"functions/jobs/facts.py, line 12: source 'uploads' takes S3Record, and"):
        SnsSource(
            synthesis.functions,
            "uploads",
            pipeline=synthesis.pipeline,
            tenant="shop",
            topic=sns.Topic(synthesis.stack, "Topic"),
        )


@pytest.mark.parametrize("tenant", ["", "a b", "shop*", "!payload", "x" * 129])
def test_an_invalid_tenant_is_refused(synthesis: Synthesis, tenant: str) -> None:
    with pytest.raises(SynthError, match="tenant"):
        SnsSource(
            synthesis.functions,
            "topic",
            pipeline=synthesis.pipeline,
            tenant=tenant,
            topic=sns.Topic(synthesis.stack, "Topic"),
        )


def test_a_table_without_a_stream_is_refused(synthesis: Synthesis) -> None:
    key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
    with pytest.raises(SynthError, match="stream"):
        TableSource(
            synthesis.functions,
            "items",
            pipeline=synthesis.pipeline,
            tenant="shop",
            table=dynamodb.Table(synthesis.stack, "Items", partition_key=key),
        )


def test_a_bucket_of_another_app_is_refused(synthesis: Synthesis) -> None:
    bucket: Any = s3.Bucket.from_bucket_name(synthesis.stack, "Bucket", "elsewhere")
    with pytest.raises(SynthError, match="EventBridgeSource"):
        S3Source(synthesis.functions, "uploads", pipeline=synthesis.pipeline, tenant="shop", bucket=bucket)


def test_a_sink_may_send_only_its_sources_to_its_bus(synthesis: Synthesis) -> None:
    bus = events.EventBus.from_event_bus_name(synthesis.stack, "Bus", "orders")
    BusSink(synthesis.pipeline, bus=bus, sources=["com.example.shop"])

    resources = synthesis.resources("Pipeline")
    workers = {id_ for id_, each in resources.items() if '"orders"' in json.dumps(each) and "WorkerFunction" in id_}
    assert {re.sub(r"WorkerFunction.*", "", id_) for id_ in workers} == {"Lanedefault", "Lanebulk"}
    rights = [
        one
        for each in resources.values()
        if each["Type"] == "AWS::IAM::Policy"
        for one in each["Properties"]["PolicyDocument"]["Statement"]
        if one["Action"] == "events:PutEvents"
    ]
    assert [one["Condition"] for one in rights] == [{"StringEquals": {"events:source": ["com.example.shop"]}}] * 2


def test_a_sink_without_sources_is_refused(synthesis: Synthesis) -> None:
    bus = events.EventBus.from_event_bus_name(synthesis.stack, "Bus", "orders")
    with pytest.raises(SynthError, match="sources"):
        BusSink(synthesis.pipeline, bus=bus, sources=[])


def test_a_second_bus_in_the_same_variable_is_refused(synthesis: Synthesis) -> None:
    """Only the last value of a variable counts, so the sinks of the first bus would send to the second."""
    first, second = (events.EventBus.from_event_bus_name(synthesis.stack, name, name) for name in ("orders", "files"))
    BusSink(synthesis.pipeline, bus=first, sources=["com.example.shop"])

    with pytest.raises(SynthError, match=r"TIDEMILL_EVENT_BUS has another value already .* variable="):
        BusSink(synthesis.pipeline, bus=second, sources=["com.example.files"], lane=Lane.BULK)

    BusSink(synthesis.pipeline, bus=second, sources=["com.example.files"], variable="FILES_BUS")
    BusSink(synthesis.pipeline, bus=first, sources=["com.example.shop.more"])


@pytest.mark.parametrize("imported", [False, True])
def test_a_fifo_topic_is_refused(synthesis: Synthesis, imported: bool) -> None:
    stack = synthesis.stack
    arn = "arn:aws:sns:eu-central-1:111122223333:orders.fifo"
    topic: sns.ITopic = sns.Topic.from_topic_arn(stack, "T", arn) if imported else sns.Topic(stack, "T", fifo=True)

    with pytest.raises(SynthError, match="Use a standard topic, or"):
        SnsSource(synthesis.functions, "topic", pipeline=synthesis.pipeline, tenant="shop", topic=topic)


def _block(name: str) -> str:
    return code_of(ROOT / "docs" / "guides" / "event-sources.md", name)


def _application(name: str) -> type[Application]:
    scope: dict[str, Any] = {"__name__": name}
    exec(compile(_block(name), name, "exec"), scope)
    (found,) = (value for value in scope.values() if isinstance(value, type) and value.__module__ == name)
    assert issubclass(found, Application)
    return found


def test_the_declarations_of_the_guide_fit_each_other() -> None:
    with job_types_of("event-sources.md", file="uploads.py") as known:
        require_sources(known)
    with job_types_of("event-sources.md", file="bus.py") as sinks:
        declared = {name: types.get(name) for types in (known, sinks) for name in types.names()}
    assert set(declared) == {"file.scan", "bus.file-uploaded"}
    require_consumers(JobTypes(declared, events=known.events))


def test_the_applications_of_the_guide_synthesise(tmp_path: Path) -> None:
    synthesis = Synthesis(tmp_path, _block("functions/jobs/uploads.py"))
    for name in ("uploads", "bus"):
        application = _application(f"stacks/applications/{name}.py")
        application(synthesis.pipeline.config, {}).add_to(synthesis.pipeline, str(tmp_path / "asset"))

    templates = {path.name: path.read_text() for path in Path(synthesis.app.synth().directory).glob("*.template.json")}
    (uploads,) = [template for name, template in templates.items() if "Uploads" in name]
    assert "tidemill.entrypoints.source.handle" in uploads
    assert "com.example.files" in templates["Pipeline.template.json"]
