"""What a stage costs on its worst day: each lane at its maximum concurrency, and each API at its rate, for 24 hours.

It is an upper bound of what the settings allow, for a stage that an error or an attack keeps busy: each line of the
bill has its own maximum, also if the others exclude it. Its assumptions:

- Jobs are small. Each request to an API is accepted. One to the API of the jobs submits a batch of `LARGEST_BATCH`,
  also one that only reads. Any other request, and one to a public route, makes one job.
- The table and the index of its listing take their default quota of write units, and the workers have no other limit
  than that and their concurrency. Handlers take no time, so the runs are as many as possible. Each run fails, which is
  the dearest end: it writes the error and a traceback. Where the stage has an archive, each run also ends its job.
- What handlers do themselves, what callers read, and the idle stage (`idle_month`) are not part of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tidemill.cost import durations
from tidemill.cost.aws_quotas import TABLE_WRITE_UNITS
from tidemill.cost.bill import Line, Usage, lines, total
from tidemill.cost.job_usage import DAY_SECONDS, of_one_job, of_one_request, of_waiting_job
from tidemill.cost.measured import FUNCTION_MB, WORKER_CALLS
from tidemill.cost.profile import Profile
from tidemill.cost.resources import function_of, properties_of
from tidemill.names import LARGEST_BATCH, Env

#: What a mapping of a queue has by default.
DEFAULT_BATCH: Final = 10
#: The route of an API that takes many jobs at once.
_BATCHES: Final = "POST /jobs/batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyLane:
    max_concurrency: int
    batch: int
    memory_mb: int

    @property
    def gigabytes(self) -> float:
        """Memory of all its workers at once."""
        return self.max_concurrency * self.memory_mb / 1024

    def runs_per_second(self) -> float:
        return self.max_concurrency * self.batch / durations.run_seconds(self._jobs)

    def failing_run(self, *, archive: bool) -> Usage:
        """Usage of one failing run, and with `archive` also of the file of its job."""
        once = of_one_job(self._jobs).times(-1)
        run = of_one_job(replace(self._jobs, attempts=2.0)) + once
        return run + of_one_job(replace(self._jobs, archive=True)) + once if archive else run

    @property
    def _jobs(self) -> Profile:
        return Profile(batch=self.batch, memory_mb=self.memory_mb)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyStage:
    lanes: Sequence[BusyLane]
    #: Requests of all APIs together, with their public routes.
    requests_per_second: int
    #: Those among them that may submit a batch.
    batches_per_second: int = 0
    archive: bool = False

    @property
    def jobs_per_second(self) -> int:
        """Submitted jobs, at most as many as the table takes: an insert writes one unit, and one of the listing."""
        submitted = self.requests_per_second + (LARGEST_BATCH - 1) * self.batches_per_second
        return min(submitted, TABLE_WRITE_UNITS)


def busy_stage(templates: Iterable[Mapping[str, Any]]) -> BusyStage:
    """Read the busy stage from its synthesised stacks. Parts that an app adds count if their limits are numbers."""
    every = [template.get("Resources", {}) for template in templates]
    return BusyStage(
        lanes=[lane for resources in every for lane in _lanes(resources)],
        requests_per_second=sum(sum(_rates(stage)) for resources in every for stage in _apis(resources)),
        batches_per_second=sum(_batches(resources) for resources in every),
        archive=any(
            Env.ARCHIVE_BUCKET in function.get("Environment", {}).get("Variables", {})
            for resources in every
            for function in properties_of(resources.values(), "AWS::Lambda::Function")
        ),
    )


def bill(stage: BusyStage) -> Sequence[Line]:
    """The bill of one day."""
    others = stage.requests_per_second - stage.batches_per_second
    used = of_one_request(Profile()).times(others)
    used += of_one_request(Profile(per_request=LARGEST_BATCH)).times(stage.batches_per_second)
    jobs = stage.jobs_per_second
    used += of_waiting_job(Profile()).times(jobs)
    # A run writes a unit with its claim, and one with its settle.
    most_runs = TABLE_WRITE_UNITS / WORKER_CALLS
    share = min(1.0, most_runs / max(1.0, sum(lane.runs_per_second() for lane in stage.lanes)))
    for lane in stage.lanes:
        used += lane.failing_run(archive=stage.archive).times(share * lane.runs_per_second())
        # Workers whose writes the table refuses are busy all the same.
        used += Usage(gigabyte_seconds=(1 - share) * lane.gigabytes)
    table_units = min(used.write_units - jobs, TABLE_WRITE_UNITS)
    return lines(replace(used, write_units=table_units + jobs).times(DAY_SECONDS))


def sentence(templates: Sequence[Mapping[str, Any]]) -> str:
    """For the output of a synth."""
    stage = busy_stage(templates)
    concurrency = sum(lane.max_concurrency for lane in stage.lanes)
    return (
        f"The worst day of this configuration costs up to ${total(bill(stage)):,.0f}: {concurrency} concurrent "
        f"workers, and {stage.requests_per_second:,} API requests a second with {stage.jobs_per_second:,} small jobs, "
        "for 24 hours. `tidemill cost` shows its lines."
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


def _apis(resources: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return properties_of(resources.values(), "AWS::ApiGatewayV2::Stage")


def _batches(resources: Mapping[str, Any]) -> int:
    """Requests a second of the APIs that take batches, without those of routes with a rate of their own."""
    routes = properties_of(resources.values(), "AWS::ApiGatewayV2::Route")
    apis = [route.get("ApiId") for route in routes if route.get("RouteKey") == _BATCHES]
    return sum(sum(_rate(api.get("DefaultRouteSettings"))) for api in _apis(resources) if api.get("ApiId") in apis)


def _rates(api: Mapping[str, Any]) -> Iterator[int]:
    for settings in (api.get("DefaultRouteSettings"), *api.get("RouteSettings", {}).values()):
        yield from _rate(settings)


def _rate(settings: Mapping[str, Any] | None) -> Iterator[int]:
    rate = (settings or {}).get("ThrottlingRateLimit")
    if isinstance(rate, int):
        yield rate
