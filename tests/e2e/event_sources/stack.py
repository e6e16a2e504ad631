"""An application with a source of each kind. The test copies it to `stacks/applications`."""

from typing import Any

from aws_cdk import App, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from stacks.app_stack import AppStack
from stacks.application import Application
from tidemill.cdk.events.eventbridge_source import EventBridgeSource
from tidemill.cdk.events.s3_source import S3Source
from tidemill.cdk.events.sns_source import SnsSource
from tidemill.cdk.events.table_source import TableSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.tags import tag

#: The name of the bus, the bucket, the topic and the table.
NAME = "facts"


class Sources(Application):
    def add_to(self, pipeline: Pipeline, asset: str) -> None:
        stack = AppStack(App.of(pipeline), "Sources", config=self.config, description="Sources")  # type: ignore[arg-type]  # it is an app
        tag(stack, self.config)
        functions = FunctionFactory(stack, config=self.config, asset=asset)
        given: Any = {"pipeline": pipeline, "tenant": "shop"}
        bus = events.EventBus(stack, "Bus", event_bus_name=NAME)
        EventBridgeSource(functions, "bus", pattern=events.EventPattern(source=["com.example.pay"]), bus=bus, **given)
        bucket = s3.Bucket(stack, "Bucket", bucket_name=NAME, removal_policy=RemovalPolicy.DESTROY)
        S3Source(functions, "uploads", bucket=bucket, **given)
        SnsSource(functions, "topic", topic=sns.Topic(stack, "Topic", topic_name=NAME), **given)
        table = dynamodb.Table(
            stack,
            "Items",
            table_name=NAME,
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            removal_policy=RemovalPolicy.DESTROY,
        )
        TableSource(functions, "items", table=table, **given)
