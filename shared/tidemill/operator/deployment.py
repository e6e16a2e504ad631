"""Finds the deployed stack by its tags and outputs, which say where everything is."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from tidemill.aws.clients import translated
from tidemill.domain.errors import TidemillError
from tidemill.names import APP, Output, Tag
from tidemill.sqs.lanes import LaneUrls

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef

#: The shortener's stack has the same tag and neither of these.
_TELLING: Final = frozenset({Output.API_URL, Output.JOBS_TABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where one deployed Tidemill is."""

    stack: str
    region: str
    #: Where the API answers, without a slash at its end.
    api_url: str
    jobs_table: str
    #: By name, since the stack may be newer than this code and know more lanes.
    lanes: Mapping[str, LaneUrls]
    #: Of finished jobs whose type says nothing else.
    retention: timedelta


class DeploymentNotFoundError(TidemillError):
    """There is not exactly one stack to work on. `remedy` is what to do about it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def find(client: "CloudFormationClient", stack: str | None) -> Deployment:
    """The stack of that name, or the only one there is. Raises `DeploymentNotFoundError`."""
    where = client.meta.region_name
    if stack:
        found = [named for named in _named(client, stack) if _outputs(named).keys() >= _TELLING]
        if not found:
            raise DeploymentNotFoundError(
                f"the stack {stack!r} in {where} lacks the outputs of a Tidemill: {', '.join(sorted(_TELLING))}",
                "Name the stack that ends in -Pipeline, or none at all to have it found.",
            )
    else:
        found = list(_tagged(client))
    if not found:
        raise DeploymentNotFoundError(
            f"no Tidemill is deployed in {where} with these credentials",
            "Deploy one with `npx cdk deploy --all`, or say where it is with --region and --profile.",
        )
    if len(found) > 1:
        names = ", ".join(sorted(one["StackName"] for one in found))
        raise DeploymentNotFoundError(
            f"more than one Tidemill is deployed in {where}: {names}",
            "Say which one with --stack NAME or TIDEMILL_STACK.",
        )
    return _read(found[0], region=where, endpoint=client.meta.endpoint_url)


def _named(client: "CloudFormationClient", stack: str) -> list["StackTypeDef"]:
    try:
        with translated():
            return client.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        raise DeploymentNotFoundError(
            f"there is no stack {stack!r} in {client.meta.region_name} with these credentials",
            "Check the name (--stack, TIDEMILL_STACK), the --region and the --profile.",
        ) from error


def _tagged(client: "CloudFormationClient") -> Iterator["StackTypeDef"]:
    with translated():
        for page in client.get_paginator("describe_stacks").paginate():
            for stack in page["Stacks"]:
                tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
                if tags.get(Tag.APP) == APP and _outputs(stack).keys() >= _TELLING:
                    yield stack


def _outputs(stack: "StackTypeDef") -> Mapping[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _read(stack: "StackTypeDef", *, region: str, endpoint: str) -> Deployment:
    outputs = _outputs(stack)
    try:
        return Deployment(
            stack=stack["StackName"],
            region=region,
            api_url=_api_url(outputs, endpoint),
            jobs_table=outputs[Output.JOBS_TABLE],
            retention=timedelta(days=int(outputs[Output.RETENTION_DAYS])),
            lanes={lane: LaneUrls(**urls) for lane, urls in json.loads(outputs[Output.LANES]).items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DeploymentNotFoundError(
            f"the outputs of the stack {stack['StackName']!r} are not those that this version knows",
            "Use the command line of the version that was deployed.",
        ) from error


def _api_url(outputs: Mapping[str, str], endpoint: str) -> str:
    """An emulator serves its APIs below its endpoint; the URL in the outputs would need a name server of its own."""
    if _loopback(urlsplit(endpoint).hostname or ""):
        return f"{endpoint.rstrip('/')}/_aws/execute-api/{outputs[Output.API_ID]}/$default"
    return outputs[Output.API_URL].rstrip("/")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
