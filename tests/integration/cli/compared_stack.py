"""A deployed stack with every kind of resource that is compared with its template, and a way to change each setting."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from moto.dynamodb.models import dynamodb_backends

from tests.integration.cli.called_functions import deploy
from tests.integration.cli.conftest import Cloud
from tests.integration.cli.loopback import ACCOUNT
from tests.support.job_tables import REGION
from tidemill.aws import clients
from tidemill.names import ADOPTED_TABLE
from tidemill.operator.drift.expected_resource import Kind

QUEUE_ARN: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue"
LETTERS_ARN: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:dead_letters"
ROLE_ARN: Final = f"arn:aws:iam::{ACCOUNT}:role/role"
TOPIC: Final = f"arn:aws:sns:{REGION}:{ACCOUNT}:tickets"
_POLICY: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sqs:*", "Resource": QUEUE_ARN}],
}
_STREAM_MAPPING: Final[Mapping[str, Any]] = {
    "BatchSize": 100,
    "BisectBatchOnFunctionError": True,
    "FilterCriteria": {"Filters": [{"Pattern": '{"a":["b"]}'}, {"Pattern": '{"c":["d"]}'}]},
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
    "MaximumBatchingWindowInSeconds": 0,
    "MaximumRecordAgeInSeconds": 21600,
    "MaximumRetryAttempts": 1000,
    "ParallelizationFactor": 10,
}
_ALARM: Final[Mapping[str, Any]] = {
    "AlarmActions": [TOPIC],
    "OKActions": [TOPIC],
    "ComparisonOperator": "GreaterThanThreshold",
    "DatapointsToAlarm": 3,
    "EvaluationPeriods": 5,
    "Period": 60,
    "Statistic": "Sum",
    "Threshold": 0,
    "TreatMissingData": "notBreaching",
}
_METRIC: Final[Mapping[str, Any]] = {
    "MetricName": "JobsDead",
    "Namespace": "Tidemill",
    "Dimensions": [{"Name": "lane", "Value": "default"}],
}


def deploy_every_kind(cloud: Cloud) -> None:
    table, sqs, cloudwatch = cloud.table.name, clients.sqs(), clients.cloudwatch()
    dynamodb: Any = clients.dynamodb()
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
    )
    dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    set_recovery(cloud, on=True)
    redrive = {"deadLetterTargetArn": LETTERS_ARN, "maxReceiveCount": 60}
    attributes: Any = {
        "VisibilityTimeout": "180",
        "MessageRetentionPeriod": "345600",
        "RedrivePolicy": json.dumps(redrive),
        "RedriveAllowPolicy": '{"redrivePermission": "denyAll"}',
        "SqsManagedSseEnabled": "true",
        "Policy": json.dumps(_POLICY),
    }
    sqs.set_queue_attributes(QueueUrl=cloud.queue, Attributes=attributes)
    cloudwatch.put_metric_alarm(AlarmName="dead", AlarmDescription="Jobs died.", **_METRIC, **_ALARM)
    cloudwatch.put_composite_alarm(AlarmName="page", AlarmRule='(ALARM("dead"))', AlarmActions=[TOPIC])
    stack = deploy(cloud.server.stacks[0], cloud.resources)
    template: dict[str, Any] = json.loads(json.dumps(stack.template))
    template["Resources"]["PublishMapping"]["Properties"] |= {
        **_STREAM_MAPPING,
        "EventSourceArn": {"Fn::GetAtt": ["Jobs", "StreamArn"]},
        "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Letters", "Arn"]}}},
    }
    template["Resources"]["WakeSchedule"]["Properties"] |= {"FlexibleTimeWindow": {"Mode": "OFF"}}
    template["Resources"]["WakeSchedule"]["Properties"]["Target"] |= {
        "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "RetryPolicy": {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0},
        "DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["Letters", "Arn"]}},
    }
    template["Resources"] |= {
        "Role": {"Type": "AWS::IAM::Role"},
        "Jobs": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "DeletionProtectionEnabled": True,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
                "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
            },
        },
        "Letters": {"Type": "AWS::SQS::Queue", "Properties": {}},
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "MessageRetentionPeriod": 345600,
                "RedriveAllowPolicy": {"redrivePermission": "denyAll"},
                "RedrivePolicy": {**redrive, "deadLetterTargetArn": {"Fn::GetAtt": ["Letters", "Arn"]}},
                "SqsManagedSseEnabled": True,
                "VisibilityTimeout": 180,
            },
        },
        "QueuePolicy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {"PolicyDocument": _POLICY, "Queues": [{"Ref": "Queue"}]},
        },
        "Dead": {"Type": "AWS::CloudWatch::Alarm", "Properties": {**_ALARM, **_METRIC}},
        "Page": {
            "Type": "AWS::CloudWatch::CompositeAlarm",
            "Properties": {
                "AlarmActions": [TOPIC],
                "AlarmRule": {"Fn::Join": ["", ['(ALARM("', {"Ref": "Dead"}, '"))']]},
            },
        },
    }
    physical = {"Jobs": table, "Queue": cloud.queue, "Letters": cloud.dead_letters, "Role": "role"}
    physical |= {"QueuePolicy": "policy-id", "Dead": "dead", "Page": "page"}
    cloud.server.stacks[0] = replace(stack, template=template, resources={**stack.resources, **physical})
    cloud.resources.mappings["uuid-publish"] |= {
        **_STREAM_MAPPING,
        "EventSourceArn": latest_stream(cloud),
        "DestinationConfig": {"OnSuccess": {}, "OnFailure": {"Destination": LETTERS_ARN}},
    }
    cloud.resources.schedules["default", "wake-1"]["Target"] |= {
        "RoleArn": ROLE_ARN,
        "RetryPolicy": {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0},
        "DeadLetterConfig": {"Arn": LETTERS_ARN},
    }


def adopt(cloud: Cloud) -> None:
    """The same stack with an existing table, as `cdk.job_table` makes its template."""
    stack = cloud.server.stacks[0]
    template: dict[str, Any] = json.loads(json.dumps(stack.template))
    table = template["Resources"].pop("Jobs")
    table["Properties"]["TableName"] = cloud.table.name
    template["Metadata"] = {ADOPTED_TABLE: table}
    template["Resources"]["PublishMapping"]["Properties"]["EventSourceArn"] = latest_stream(cloud)
    resources = {id_: name for id_, name in stack.resources.items() if id_ != "Jobs"}
    cloud.server.stacks[0] = replace(stack, template=template, resources=resources)


def latest_stream(cloud: Cloud) -> str:
    return str(clients.dynamodb().describe_table(TableName=cloud.table.name)["Table"]["LatestStreamArn"])


def set_recovery(cloud: Cloud, *, on: bool) -> None:
    specification: Any = {"PointInTimeRecoveryEnabled": on}
    clients.dynamodb().update_continuous_backups(
        TableName=cloud.table.name, PointInTimeRecoverySpecification=specification
    )


def disable_stream(cloud: Cloud) -> None:
    clients.dynamodb().update_table(TableName=cloud.table.name, StreamSpecification={"StreamEnabled": False})
    # Moto goes on to write records, and refuses to enable a stream again.
    table = dynamodb_backends[ACCOUNT][REGION].tables[cloud.table.name]
    table.latest_stream_label = table.stream_shard = None


def _view(view: str) -> Any:
    return {"StreamEnabled": True, "StreamViewType": view}


def _disable_ttl(cloud: Cloud) -> None:
    specification: Any = {"Enabled": False, "AttributeName": "expires_at"}
    clients.dynamodb().update_time_to_live(TableName=cloud.table.name, TimeToLiveSpecification=specification)


def _unprotect(cloud: Cloud) -> None:
    clients.dynamodb().update_table(TableName=cloud.table.name, DeletionProtectionEnabled=False)


def _queue(name: str, value: str) -> Callable[[Cloud], object]:
    attributes: Any = {name: value}
    return lambda cloud: clients.sqs().set_queue_attributes(QueueUrl=cloud.queue, Attributes=attributes)


def _alarm(name: str, value: Any) -> Callable[[Cloud], None]:
    def change(_: Cloud) -> None:
        changed: Any = {"AlarmName": "dead", "AlarmDescription": "Jobs died.", **_METRIC, **_ALARM, name: value}
        clients.cloudwatch().put_metric_alarm(**changed)

    return change


def _silence_all(_: Cloud) -> None:
    clients.cloudwatch().put_composite_alarm(AlarmName="page", AlarmRule='(ALARM("other"))', AlarmActions=[TOPIC])


def _mapping(name: str, value: Any, *, uuid: str = "uuid-publish") -> Callable[[Cloud], None]:
    return lambda cloud: cloud.resources.mappings[uuid].update({name: value})


def _schedule(name: str, value: Any) -> Callable[[Cloud], None]:
    return lambda cloud: cloud.resources.schedules["default", "wake-1"].update({name: value})


def _target(name: str, value: Any) -> Callable[[Cloud], None]:
    return lambda cloud: cloud.resources.schedules["default", "wake-1"]["Target"].update({name: value})


def _new_stream(cloud: Cloud) -> None:
    disable_stream(cloud)
    clients.dynamodb().update_table(TableName=cloud.table.name, StreamSpecification=_view("NEW_AND_OLD_IMAGES"))


#: For each setting that is compared: a change that makes it differ.
DRIFTS: Final[Mapping[tuple[Kind, str], Callable[[Cloud], object]]] = {
    (Kind.TABLE, "TimeToLive"): _disable_ttl,
    (Kind.TABLE, "Stream"): disable_stream,
    (Kind.TABLE, "PointInTimeRecovery"): lambda cloud: set_recovery(cloud, on=False),
    (Kind.TABLE, "DeletionProtection"): _unprotect,
    (Kind.QUEUE, "MessageRetentionPeriod"): _queue("MessageRetentionPeriod", "60"),
    (Kind.QUEUE, "RedriveAllowPolicy"): _queue("RedriveAllowPolicy", '{"redrivePermission": "allowAll"}'),
    (Kind.QUEUE, "RedrivePolicy"): _queue("RedrivePolicy", ""),
    (Kind.QUEUE, "SqsManagedSseEnabled"): _queue("SqsManagedSseEnabled", "false"),
    (Kind.QUEUE, "VisibilityTimeout"): _queue("VisibilityTimeout", "1"),
    (Kind.POLICY, "Policy"): _queue("Policy", ""),
    (Kind.ALARM, "ActionsEnabled"): _alarm("ActionsEnabled", value=False),
    (Kind.ALARM, "AlarmActions"): _alarm("AlarmActions", []),
    (Kind.ALARM, "AlarmRule"): _silence_all,
    (Kind.ALARM, "ComparisonOperator"): _alarm("ComparisonOperator", "LessThanThreshold"),
    (Kind.ALARM, "DatapointsToAlarm"): _alarm("DatapointsToAlarm", 5),
    (Kind.ALARM, "EvaluationPeriods"): _alarm("EvaluationPeriods", 9),
    (Kind.ALARM, "OKActions"): _alarm("OKActions", []),
    (Kind.ALARM, "Period"): _alarm("Period", 300),
    (Kind.ALARM, "Statistic"): _alarm("Statistic", "Maximum"),
    (Kind.ALARM, "Threshold"): _alarm("Threshold", 1000.0),
    (Kind.ALARM, "TreatMissingData"): _alarm("TreatMissingData", "ignore"),
    (Kind.MAPPING, "BatchSize"): _mapping("BatchSize", 1),
    (Kind.MAPPING, "BisectBatchOnFunctionError"): _mapping("BisectBatchOnFunctionError", value=False),
    (Kind.MAPPING, "DestinationConfig"): _mapping("DestinationConfig", {"OnFailure": {}}),
    (Kind.MAPPING, "Enabled"): _mapping("State", "Disabled"),
    (Kind.MAPPING, "EventSourceArn"): _new_stream,
    (Kind.MAPPING, "FilterCriteria"): _mapping("FilterCriteria", {"Filters": [{"Pattern": '{"a":["b"]}'}]}),
    (Kind.MAPPING, "FunctionResponseTypes"): _mapping("FunctionResponseTypes", []),
    (Kind.MAPPING, "MaximumBatchingWindowInSeconds"): _mapping("MaximumBatchingWindowInSeconds", 30),
    (Kind.MAPPING, "MaximumRecordAgeInSeconds"): _mapping("MaximumRecordAgeInSeconds", 60),
    (Kind.MAPPING, "MaximumRetryAttempts"): _mapping("MaximumRetryAttempts", -1),
    (Kind.MAPPING, "ParallelizationFactor"): _mapping("ParallelizationFactor", 1),
    (Kind.MAPPING, "ScalingConfig"): _mapping("ScalingConfig", {"MaximumConcurrency": 2}, uuid="uuid-work"),
    (Kind.SCHEDULE, "FlexibleTimeWindow"): _schedule("FlexibleTimeWindow", {"Mode": "FLEXIBLE"}),
    (Kind.SCHEDULE, "ScheduleExpression"): _schedule("ScheduleExpression", "rate(1 hour)"),
    (Kind.SCHEDULE, "State"): _schedule("State", "DISABLED"),
    (Kind.SCHEDULE, "Target.Arn"): _target("Arn", "arn:other"),
    (Kind.SCHEDULE, "Target.DeadLetterConfig"): _target("DeadLetterConfig", {}),
    (Kind.SCHEDULE, "Target.Input"): _target("Input", "{}"),
    (Kind.SCHEDULE, "Target.RetryPolicy"): _target("RetryPolicy", {"MaximumRetryAttempts": 185}),
    (Kind.SCHEDULE, "Target.RoleArn"): _target("RoleArn", "arn:other"),
}
