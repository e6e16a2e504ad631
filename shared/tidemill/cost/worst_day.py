"""What a stage costs on its worst day: each lane at its maximum concurrency, and each API at its rate, for 24 hours.

It is an upper bound of what the settings allow, for a stage that an error or an attack keeps busy. Its assumptions:

- Each request to an API is accepted and makes a small job, also one that only reads.
- Workers have no other limit than their concurrency and the write quota of the table. Handlers take no time, so the
  runs are as many as possible. Each further run fails, which is the dearest end: it writes the error and a traceback.
- What handlers do themselves, what callers read, and the idle stage (`idle_month`) are not part of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidemill.cost import durations
from tidemill.cost.aws_quotas import TABLE_WRITE_UNITS
from tidemill.cost.bill import Line, lines, total
from tidemill.cost.job_usage import DAY_SECONDS, of_one_job
from tidemill.cost.measured import FUNCTION_MB
from tidemill.cost.profile import Profile
from tidemill.cost.resources import function_of, properties_of

#: What a mapping of a queue has by default.
DEFAULT_BATCH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyLane:
    max_concurrency: int
    batch: int
    memory_mb: int

    def runs_per_second(self) -> float:
        profile = Profile(batch=self.batch, memory_mb=self.memory_mb)
        return self.max_concurrency * self.batch / durations.run_seconds(profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyStage:
    lanes: Sequence[BusyLane]
    #: Of all APIs together, with their public routes.
    requests_per_second: int


def busy_stage(templates: Iterable[Mapping[str, Any]]) -> BusyStage:
    """Of all stacks of one stage, as they were synthesised. What an app adds counts if its limits are numbers."""
    every = [template.get("Resources", {}) for template in templates]
    return BusyStage(
        lanes=[lane for resources in every for lane in _lanes(resources)],
        requests_per_second=sum(
            sum(_rates(stage))
            for resources in every
            for stage in properties_of(resources.values(), "AWS::ApiGatewayV2::Stage")
        ),
    )


def bill(stage: BusyStage) -> Sequence[Line]:
    """Of one day. Each job of an API has a run, and the other runs are further attempts."""
    job = of_one_job(Profile())
    further = of_one_job(Profile(attempts=2)) + job.times(-1)
    by_workers = sum(lane.runs_per_second() for lane in stage.lanes)
    left_units = max(0.0, TABLE_WRITE_UNITS - stage.requests_per_second * job.write_units)
    runs = min(max(0.0, by_workers - stage.requests_per_second), left_units / further.write_units)
    a_second = job.times(stage.requests_per_second) + further.times(runs)
    return lines(a_second.times(DAY_SECONDS))


def sentence(templates: Sequence[Mapping[str, Any]]) -> str:
    """For the output of a synth."""
    stage = busy_stage(templates)
    concurrency = sum(lane.max_concurrency for lane in stage.lanes)
    return (
        f"The worst day of this configuration costs about ${total(bill(stage)):,.0f}: {concurrency} concurrent workers "
        f"and {stage.requests_per_second:,} API requests a second for 24 hours. `tidemill cost` shows its lines."
    )


def _lanes(resources: Mapping[str, Any]) -> Iterator[BusyLane]:
    for mapping in properties_of(resources.values(), "AWS::Lambda::EventSourceMapping"):
        concurrency = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if isinstance(concurrency, int):
            function = function_of(resources, mapping.get("FunctionName"))
            yield BusyLane(
                max_concurrency=concurrency,
                batch=mapping.get("BatchSize", DEFAULT_BATCH),
                memory_mb=function.get("MemorySize", FUNCTION_MB),
            )


def _rates(stage: Mapping[str, Any]) -> Iterator[int]:
    settings = [stage.get("DefaultRouteSettings", {}), *stage.get("RouteSettings", {}).values()]
    rates = (each.get("ThrottlingRateLimit") for each in settings)
    return (rate for rate in rates if isinstance(rate, int))
