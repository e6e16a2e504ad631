"""`python -m demo.figures capacity` computes start latency and backlog for a burst, a ramp and a partition split.

It needs no AWS: `demo.figures.capacity_model` is a model. It prints the table of docs/operations/scale.md and draws its
plots. It fails if the settings for 10,000 jobs a second do not carry them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.figures.capacity_model import STEP_SECONDS, Played, capacity_of, play
from demo.figures.index_model import IndexModel
from demo.figures.require import require
from demo.figures.time_plot import Panel, svg
from tidemill.cost.aws_quotas import NEW_TABLE_WRITE_UNITS, PARTITION_WRITE_UNITS
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits

_ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = _ROOT / "docs/operations"
RATE: Final = 10_000.0
#: `api_burst` of `prod`, which the settings leave as it is.
API_BURST: Final = 600
MINUTE: Final = 60.0
#: So many places of the index keys are drawn. The table shows the worst of them, and a plot the first.
DRAWS: Final = 5
#: For the part of a load that is accepted at first.
MANY_DRAWS: Final = 1_000
FIRST_RATES: Final = (5_000.0, 8_000.0, RATE)
#: The points of a curve.
_POINTS: Final = 150


#: Submitted a hundred at a time, with a handler that waits a tenth of a second.
JOBS: Final = Profile(per_request=100, handler_ms=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    limits: StageLimits
    jobs: Profile = JOBS

    @property
    def warm_units(self) -> int:
        return max(self.limits.warm_write_units, NEW_TABLE_WRITE_UNITS)

    def index(self, draw: int) -> IndexModel:
        if not self.jobs.listing:
            return IndexModel(shards=1, partitions=1, bound=math.inf)
        partitions = self.warm_units // PARTITION_WRITE_UNITS
        return IndexModel(shards=self.limits.index_shards, partitions=partitions, seed=draw)


PROD: Final = Settings(limits=StageLimits())
MORE_WORKERS: Final = Settings(limits=replace(PROD.limits, max_concurrency=300))
#: What docs/operations/scale.md sets for 10,000 jobs a second of one tenant.
FAST: Final = Settings(limits=replace(MORE_WORKERS.limits, warm_write_units=40_000))
UNLISTED: Final = replace(FAST, jobs=replace(FAST.jobs, listing=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    #: Jobs a second that are submitted at a time.
    offered: Callable[[float], float]
    minutes: float
    #: By the names that the plot shows.
    settings: Mapping[str, Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The worst of all draws for one scenario and one set of settings."""

    scenario: str
    settings: str
    #: None: such jobs have not started at the end of the run.
    longest_start_seconds: float | None
    most_at_callers: float
    most_in_stage: float
    most_batches: float
    drained_minutes: float | None


def burst(now: float) -> float:
    return RATE if MINUTE <= now < 2 * MINUTE else RATE / 100


def ramp(now: float) -> float:
    return RATE * min(now / (60 * MINUTE), 1.0)


def steady(_now: float) -> float:
    return RATE


SCENARIOS: Final = (
    Scenario(name="burst", offered=burst, minutes=15, settings={"prod": PROD, "10,000/s": FAST}),
    Scenario(name="ramp", offered=ramp, minutes=150, settings={"prod, 300 batches": MORE_WORKERS, "10,000/s": FAST}),
    Scenario(name="split", offered=steady, minutes=45, settings={"10,000/s": FAST, "listing=off": UNLISTED}),
)


def played(scenario: Scenario, settings: Settings, *, draw: int = 0) -> Played:
    capacity = capacity_of(settings.jobs, settings.limits, api_burst=API_BURST)
    return play(capacity, scenario.offered, seconds=scenario.minutes * MINUTE, index=settings.index(draw))


def row(scenario: Scenario, settings: str, runs: Sequence[Played]) -> Row:
    steps = range(0, len(runs[0].at), round(1 / STEP_SECONDS))
    drained = [run.drained_at for run in runs]
    starts = [[run.start_seconds(step) for step in steps] for run in runs]
    # The jobs of the last seconds have not started, also without a backlog.
    late = [each for of_run in starts for each in of_run[: -round(MINUTE)]]
    return Row(
        scenario=scenario.name,
        settings=settings,
        longest_start_seconds=None if None in late else max(each for each in late if each is not None),
        most_at_callers=max(run.at_callers(step) for run in runs for step in steps),
        most_in_stage=max(run.in_stage(step) for run in runs for step in steps),
        most_batches=max(max(run.concurrency) for run in runs),
        drained_minutes=None if None in drained else max(each for each in drained if each is not None) / MINUTE,
    )


def rows(scenario: Scenario, *, draws: int = DRAWS) -> tuple[list[Row], dict[str, Played]]:
    """And the first draw of each, for the plot."""
    found, first = [], {}
    for name, settings in scenario.settings.items():
        runs = [played(scenario, settings, draw=draw) for draw in range(draws if settings.jobs.listing else 1)]
        found.append(row(scenario, name, runs))
        first[name] = runs[0]
    return found, first


def plot(runs: Mapping[str, Played]) -> str:
    starts: dict[str, list[tuple[float, float]]] = {}
    backlogs: dict[str, list[tuple[float, float]]] = {}
    for name, run in runs.items():
        points = [(run.at[step] / MINUTE, step) for step in range(0, len(run.at), len(run.at) // _POINTS)]
        waits = [(minutes, run.start_seconds(step)) for minutes, step in points]
        starts[name] = [(minutes, wait) for minutes, wait in waits if wait is not None]
        backlogs[name] = [(minutes, run.at_callers(step) + run.in_stage(step)) for minutes, step in points]
    return svg(
        [
            Panel("seconds until a job starts, by its submission, on the slowest index key", starts),
            Panel("jobs that wait, at their callers and in the stage", backlogs),
        ]
    )


HEADER: Final = (
    f"{'scenario':9}{'settings':19}{'longest wait, s':>16}{'refused':>12}{'in stage':>10}{'batches':>9}{'drained':>11}"
)


def line(each: Row) -> str:
    wait = "" if each.longest_start_seconds is None else f"{each.longest_start_seconds:,.0f}"
    drained = "no" if each.drained_minutes is None else f"{each.drained_minutes:,.0f} min"
    return (
        f"{each.scenario:9}{each.settings:19}{wait or 'unknown':>16}{each.most_at_callers:>12,.0f}"
        f"{each.most_in_stage:>10,.0f}{each.most_batches:>9,.0f}{drained:>11}"
    )


def accepted_at_first(rate: float, settings: Settings) -> list[float]:
    """The part of a new load that the index takes before any partition is split: the lowest draw first."""
    found = []
    for draw in range(MANY_DRAWS):
        index = settings.index(draw)
        index.offer(rate)
        found.append(index.accept(math.inf, 1.0) / rate)
    return sorted(found)


def first_line(rate: float) -> str:
    found = accepted_at_first(rate, FAST)
    middle, low = found[len(found) // 2], found[len(found) // 20]
    return f"{rate:>6,.0f} jobs/s with the listing: {middle:.1%} accepted at first, {low:.1%} in one of twenty stages"


def main() -> None:
    console = Console(highlight=False)
    console.print(HEADER, soft_wrap=True)
    for scenario in SCENARIOS:
        found, runs = rows(scenario)
        for each in found:
            console.print(line(each), soft_wrap=True)
            carries = scenario.settings[each.settings].limits.warm_write_units > 0
            require(
                not carries or each.drained_minutes is not None, f"{each.settings} do not carry the {each.scenario}"
            )
        file = FOLDER / f"scale-{scenario.name}.svg"
        file.write_text(plot(runs))
        console.print(f"plot: {file.relative_to(_ROOT)}")
    for rate in FIRST_RATES:
        console.print(first_line(rate))
