"""Finds the deployed pipeline stack by its tags, and reads its outputs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from tidemill.aws.clients import translated
from tidemill.aws.http_client import api_address
from tidemill.domain.errors import TidemillError
from tidemill.names import APP, Output, Tag
from tidemill.sqs.lanes import LaneUrls

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef

#: A stack of the app may have the same tag. Only the pipeline's stack has these outputs.
_REQUIRED_OUTPUTS: Final = frozenset({Output.API_URL, Output.JOBS_TABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The addresses of one deployed Tidemill."""

    stack: str
    #: The value of the dimension `stage` of our metrics.
    stage: str
    region: str
    #: Without a trailing slash.
    api_url: str
    jobs_table: str
    #: How often the jobs were restored from a backup.
    epoch: int
    #: JSON of `powertools.app_config.Place`; empty where the functions read their configuration from the table.
    app_config: str
    files_bucket: str
    #: By lane name. A plain string, because a newer stack may have lanes that this code does not know.
    lanes: Mapping[str, LaneUrls]
    #: The schedule expression of each periodic job type.
    schedules: Mapping[str, str]
    #: The name of each function by its verb: `publish`, `work`, `work-bulk`.
    functions: Mapping[str, str]
    #: For finished jobs whose type sets no retention of its own.
    retention: timedelta
    #: How long audit entries are kept.
    audit_retention: timedelta
    #: The ARN of the topic of pages.
    page_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStack:
    """A stack of the stage that has functions."""

    name: str
    #: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
    status: str
    #: The name of each function by its key.
    functions: Mapping[str, str]
    #: The number of the version that the last deployment made the live one, by the same keys.
    versions: Mapping[str, str]

    @property
    def in_progress(self) -> bool:
        """Whether a deployment may still move an alias. The cleanup after a deployment does not."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"

    @property
    def can_be_cancelled(self) -> bool:
        """Only an update can, and not its rollback.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CancelUpdateStack.html
        """
        return self.status == "UPDATE_IN_PROGRESS"


class DeploymentNotFoundError(TidemillError):
    """Zero stacks match, several do, or the outputs are unreadable. `remedy` says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def find(client: "CloudFormationClient", stack: str | None) -> Deployment:
    """The stack of that name, or without a name the only one. Raises `DeploymentNotFoundError`."""
    where = client.meta.region_name
    if stack:
        found = [named for named in _named(client, stack) if _outputs(named).keys() >= _REQUIRED_OUTPUTS]
        if not found:
            required = ", ".join(sorted(_REQUIRED_OUTPUTS))
            raise DeploymentNotFoundError(
                f"the stack {stack!r} in {where} lacks the outputs of a Tidemill: {required}",
                "Name the stack that ends in -Pipeline, or omit --stack and TIDEMILL_STACK to find it by its tags.",
            )
    else:
        found = [tagged for tagged in _tagged(client) if _outputs(tagged).keys() >= _REQUIRED_OUTPUTS]
    if not found:
        raise DeploymentNotFoundError(
            f"found no Tidemill stack in {where} with these credentials",
            "Deploy one with `npx cdk deploy --all`, or choose another --region or --profile.",
        )
    if len(found) > 1:
        names = ", ".join(sorted(one["StackName"] for one in found))
        raise DeploymentNotFoundError(
            f"found several Tidemill stacks in {where}: {names}",
            "Choose one with --stack NAME or TIDEMILL_STACK.",
        )
    return _read(found[0], region=where, endpoint=client.meta.endpoint_url)


def stacks_of(client: "CloudFormationClient", stage: str) -> list[str]:
    """The names of all stacks of the stage."""
    return [stack["StackName"] for stack in _of_stage(client, stage)]


def log_groups(client: "CloudFormationClient", found: Deployment) -> list[tuple[str, str]]:
    """The key and the log group of each function, from all stacks of the stage. Raises `DeploymentNotFoundError`."""
    outputs = [_outputs(stack) for stack in _of_stage(client, found.stage)]
    groups = [json.loads(each[Output.LOG_GROUPS]) for each in outputs if Output.LOG_GROUPS in each]
    if not groups:
        raise DeploymentNotFoundError(
            f"the stack {found.stack!r} has no output {Output.LOG_GROUPS}",
            "Deploy the version of this command line.",
        )
    return [pair for group in groups for pair in group.items()]


def function_stacks(client: "CloudFormationClient", stage: str) -> list[FunctionStack]:
    """The stacks of the stage whose functions have versions."""
    return [
        FunctionStack(
            name=stack["StackName"],
            status=stack["StackStatus"],
            functions=json.loads(outputs[Output.FUNCTIONS]),
            versions=json.loads(outputs[Output.VERSIONS]),
        )
        for stack in _of_stage(client, stage)
        if Output.VERSIONS in (outputs := _outputs(stack))
    ]


def _named(client: "CloudFormationClient", stack: str) -> list["StackTypeDef"]:
    try:
        with translated():
            return client.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        raise DeploymentNotFoundError(
            f"found no stack {stack!r} in {client.meta.region_name} with these credentials",
            "Check the name (--stack, TIDEMILL_STACK), the --region and the --profile.",
        ) from error


def _tagged(client: "CloudFormationClient") -> Iterator["StackTypeDef"]:
    with translated():
        for page in client.get_paginator("describe_stacks").paginate():
            for stack in page["Stacks"]:
                if _tags(stack).get(Tag.APP) == APP:
                    yield stack


def _of_stage(client: "CloudFormationClient", stage: str) -> Iterator["StackTypeDef"]:
    return (stack for stack in _tagged(client) if _tags(stack).get(Tag.STAGE) == stage)


def _tags(stack: "StackTypeDef") -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}


def _outputs(stack: "StackTypeDef") -> Mapping[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _read(stack: "StackTypeDef", *, region: str, endpoint: str) -> Deployment:
    outputs = _outputs(stack)
    try:
        return Deployment(
            stack=stack["StackName"],
            stage=_tags(stack)[Tag.STAGE],
            region=region,
            api_url=api_address(outputs[Output.API_ID], outputs[Output.API_URL], endpoint=endpoint),
            jobs_table=outputs[Output.JOBS_TABLE],
            epoch=int(outputs[Output.EPOCH]),
            app_config=outputs.get(Output.APP_CONFIG, ""),
            files_bucket=outputs[Output.FILES_BUCKET],
            retention=timedelta(days=int(outputs[Output.RETENTION_DAYS])),
            audit_retention=timedelta(days=int(outputs[Output.AUDIT_RETENTION_DAYS])),
            schedules=json.loads(outputs[Output.SCHEDULES]),
            functions=json.loads(outputs[Output.FUNCTIONS]),
            page_topic=outputs[Output.ALARM_TOPIC],
            lanes={lane: LaneUrls(**urls) for lane, urls in json.loads(outputs[Output.LANES]).items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DeploymentNotFoundError(
            f"this version cannot read the outputs of the stack {stack['StackName']!r}",
            "Use the version of the command line that is deployed.",
        ) from error
