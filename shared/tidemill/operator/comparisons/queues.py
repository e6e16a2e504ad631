"""Queues and their policies, which are attributes of a queue."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.domain.errors import MissingResourceError
from tidemill.operator.comparisons.comparison import Found, OwnSettings, picked
from tidemill.operator.drift.expected_resource import Expected, Kind

SETTINGS: Final = (
    "MessageRetentionPeriod",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
)
POLICY: Final = "Policy"
_MISSING: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class Queues(OwnSettings):
    kind: Kind = Kind.QUEUE
    template_types: Sequence[str] = ("AWS::SQS::Queue",)

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        return picked(properties, SETTINGS)

    def read(self, expected: Expected) -> Found:
        names: list[Any] = list(expected.settings)
        try:
            with translated():
                found: Any = clients.sqs().get_queue_attributes(
                    QueueUrl=str(expected.physical_id), AttributeNames=names
                )
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                raise MissingResourceError(str(error)) from error
            raise
        # SQS names no attributes if the queue has none of them.
        return Found(settings=found.get("Attributes", {}), description={})

    def calls(self, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [names]

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:  # noqa: ARG002 - the protocol's
        attributes: dict[Any, str] = {name: _text(expected.settings[name]) for name in names}
        with translated():
            clients.sqs().set_queue_attributes(QueueUrl=str(expected.physical_id), Attributes=attributes)


class QueuePolicies(Queues):
    kind = Kind.POLICY
    template_types = ("AWS::SQS::QueuePolicy",)

    def targets(self, properties: Mapping[str, Any], /) -> Sequence[Any]:
        return list(properties["Queues"])

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        return {POLICY: properties["PolicyDocument"]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
