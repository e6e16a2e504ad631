"""The settings of a stage that bound its throughput, as its synthesised templates have them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.cost.resources import properties_of
from tidemill.names import Env


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLimits:
    """Each default is the one of `prod` in this repository."""

    #: Requests a second of the API with the jobs.
    api_rate: int = 1000
    #: The largest concurrency of a lane.
    max_concurrency: int = 50
    index_shards: int = 16
    #: Write units a second that the jobs table can take at once; 0: as DynamoDB has it.
    warm_write_units: int = 0
    #: Concurrent batches of each shard of the stream.
    parallelization: int = 10


def limits_of(templates: Iterable[Mapping[str, Any]]) -> StageLimits:
    """Read the limits of the stack with the lanes, among all stacks of one stage."""
    for template in templates:
        resources = template.get("Resources", {}).values()
        lanes = _numbers(resources, "AWS::Lambda::EventSourceMapping", "ScalingConfig", "MaximumConcurrency")
        # The app may add a queue with a function to another stack.
        if lanes and (
            shards := _numbers(resources, "AWS::Lambda::Function", "Environment", "Variables", Env.INDEX_SHARDS)
        ):
            rates = _numbers(resources, "AWS::ApiGatewayV2::Stage", "DefaultRouteSettings", "ThrottlingRateLimit")
            warm = _numbers(resources, "AWS::DynamoDB::Table", "WarmThroughput", "WriteUnitsPerSecond")
            streams = _numbers(resources, "AWS::Lambda::EventSourceMapping", "ParallelizationFactor")
            return StageLimits(
                api_rate=max(rates),
                max_concurrency=max(lanes),
                index_shards=max(shards),
                warm_write_units=max(warm, default=0),
                parallelization=max(streams),
            )
    return StageLimits()


def _numbers(resources: Iterable[Mapping[str, Any]], type_: str, *path: str) -> list[int]:
    """The values at the path, of the resources that have a number there."""
    values = []
    for properties in properties_of(resources, type_):
        value: Any = properties
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, int | str) and str(value).isdecimal():
            values.append(int(value))
    return values
