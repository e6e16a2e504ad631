"""Event source mappings: whether they are on, how they read, and where records go that cannot be processed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.operator.comparisons.comparison import Found, OwnSettings, picked
from tidemill.operator.drift.expected_resource import Expected, Kind, LatestStream

#: https://docs.aws.amazon.com/lambda/latest/api/API_GetEventSourceMapping.html
_ON: Final = frozenset({"Creating", "Enabling", "Enabled", "Updating"})
_FILTER: Final = "FilterCriteria"
SETTINGS: Final = (
    "BatchSize",
    "BisectBatchOnFunctionError",
    "DestinationConfig",
    _FILTER,
    "FunctionResponseTypes",
    "MaximumBatchingWindowInSeconds",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "ParallelizationFactor",
    "ScalingConfig",
)
STREAM: Final = "EventSourceArn"


class Mappings(OwnSettings):
    kind: Final = Kind.MAPPING
    template_types: Final = ("AWS::Lambda::EventSourceMapping",)

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventsourcemapping.html
        enabled = properties.get("Enabled", True) is not False
        # Lambda deletes the messages that a filter does not match, so one that the template lacks must not stay.
        found = {"Enabled": enabled, _FILTER: {}, **picked(properties, SETTINGS)}
        # Only a stream can get another ARN.
        match properties.get(STREAM):
            case {"Fn::GetAtt": [_, "StreamArn"]} as source:
                return {**found, STREAM: source}
            # The stream belongs to an adopted table.
            case str(arn) if "/stream/" in arn:
                return {**found, STREAM: LatestStream(arn.split("/")[1])}
        return found

    def read(self, expected: Expected) -> Found:
        with translated():
            found: Mapping[str, Any] = clients.lambda_().get_event_source_mapping(UUID=expected.physical_id)
            stream = expected.settings.get(STREAM)
            if isinstance(stream, LatestStream):
                latest = _latest(stream)
                if latest and found[STREAM] != latest:
                    others = clients.lambda_().list_event_source_mappings(
                        FunctionName=found["FunctionArn"], EventSourceArn=latest
                    )
                    # A repair made it, when the stream was new.
                    found = next(iter(others["EventSourceMappings"]), found)
                if not latest or found[STREAM] == latest:
                    found = {**found, STREAM: stream}
        enabled = found["State"] in _ON
        settings = {_FILTER: {}, **found, "Enabled": enabled}
        return Found(settings=settings, state=found["State"], enabled=enabled, description=found)

    def calls(self, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [names]

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:
        stream = expected.settings.get(STREAM)
        with translated():
            if STREAM in names and isinstance(stream, LatestStream):
                # No update can change the source of a mapping. The old one reads the rest of the old stream.
                # https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
                clients.lambda_().create_event_source_mapping(
                    **{
                        **expected.settings,
                        STREAM: _latest(stream),
                        "FunctionName": found.description["FunctionArn"],
                        "StartingPosition": "TRIM_HORIZON",
                    }
                )
            else:
                wanted = {name: expected.settings[name] for name in names}
                clients.lambda_().update_event_source_mapping(UUID=found.description["UUID"], **wanted)


def _latest(stream: LatestStream) -> str:
    """Empty for a table that never had a stream."""
    return str(clients.dynamodb().describe_table(TableName=stream.table)["Table"].get("LatestStreamArn", ""))
