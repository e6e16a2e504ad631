"""`tidemill cost`: dollars of a million jobs of a profile, and of an idle month and the worst day of a stage."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import visible
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.cost import bill, idle_month, list_prices, worst_day
from tidemill.cost.bill import Line
from tidemill.cost.bounds import Bound, bounds, ramp_minutes, workers
from tidemill.cost.job_usage import DAYS_PER_MONTH, daily_quota, of_one_job, with_log_storage
from tidemill.cost.payload_places import break_even_bytes
from tidemill.cost.profile import Profile, ProfileError
from tidemill.cost.stage_limits import StageLimits, limits_of
from tidemill.cost.stage_parts import parts_of
from tidemill.names import LARGEST_BODY_BYTES
from tidemill.operator.deployments import synthesised_app
from tidemill.operator.deployments.synthesised_app import AssemblyError, Template

_JOBS: Final = 1e6
_DEFAULT: Final = Profile()
#: The least number of units without fractions.
_WHOLE: Final = 100
_SYNTH: Final = "Synthesise the app of a stage first: `npx cdk synth -q -c stage=STAGE`."
Command = TypeVar("Command", bound=Callable[..., Any])
_SECONDS_PER_DAY: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    jobs_per_second: float
    dollars_per_month: float
    #: Concurrent invocations of the worker, and the time of the mapping to reach them from an idle queue.
    workers: float
    ramp_minutes: float
    #: The lowest first.
    bounds: Sequence[Bound]

    def binds(self, bound: Bound) -> bool:
        return bound.jobs_per_second < self.jobs_per_second

    def as_json(self) -> dict[str, Any]:
        members = ("name", "jobs_per_second", "figure", "change", "remedy")
        return {
            "jobs_per_second": self.jobs_per_second,
            "dollars_per_month": self.dollars_per_month,
            "workers": self.workers,
            "ramp_minutes": self.ramp_minutes,
            "bounds": [
                {name: getattr(bound, name) for name in members} | {"binds": self.binds(bound)} for bound in self.bounds
            ],
        }


class _Positive(click.FloatRange):
    """Click's own range accepts `nan`, and without a maximum `inf`."""

    def __init__(self) -> None:
        # Large for a rate and for dollars, and its quotients are finite.
        super().__init__(min=0, max=1_000_000_000, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def _number(name: str, help_: str) -> Callable[[Command], Command]:
    """An option that sets this member of the profile."""
    default = getattr(_DEFAULT, name)
    option = "--" + name.replace("_", "-")
    return click.option(option, type=type(default), default=default, show_default=True, metavar="NUMBER", help=help_)


@click.command()
@_number("payload_bytes", "JSON text of the payload.")
@_number("result_bytes", "JSON text of the result.")
@_number("payload_item_bytes", "The setting of the stage: a larger payload is a file.")
@_number("compression", "How much smaller the setting compress_payloads makes payloads in items. 1: off.")
@_number("per_request", "Jobs in one request to the API; 0 if jobs come from Python.")
@_number("batch", "Jobs in one batch of a worker, on average. 1 below some jobs a second.")
@_number("attempts", "Runs of a job, on average.")
@_number("handler_ms", "Wall time of the handler. The jobs of a batch overlap.")
@_number("memory_mb", "Memory of the worker.")
@_number("log_sample_rate", "The setting of the stage, from 0 to 1.")
@click.option("--listing/--no-listing", default=True, show_default=True, help="Whether the stage lists jobs.")
@click.option("--group", is_flag=True, help="Jobs wait for one another in groups.")
@click.option("--limit", is_flag=True, help="Runs take a slot of a limit that has room.")
@click.option("--grouped", is_flag=True, help='Types have commit="grouped".')
@click.option("--first-message", is_flag=True, help="The lane has first_message_at_once, as critical has.")
@click.option("--archive", is_flag=True, help="The stage archives ended jobs.")
@click.option(
    "--backups/--no-backups",
    "point_in_time_recovery",
    default=True,
    show_default=True,
    help="Whether the table has point-in-time recovery.",
)
@_number("retention_days", "How long ended jobs are kept.")
@_number("log_retention_days", "How long log lines are kept.")
@click.option(
    "--app",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The output of `cdk synth`, for the idle month and the settings. Default: cdk.out, if it is there.",
)
@click.option(
    "--rate",
    type=_Positive(),
    metavar="NUMBER",
    help="Jobs a second: also print their price by the month, and what binds first.",
)
@click.option(
    "--budget",
    type=_Positive(),
    metavar="DOLLARS",
    help="Of a tenant a day: also print the quota of submissions that keeps to it.",
)
@click.option("--prices", is_flag=True, help="Print the list prices with their sources instead.")
@json_option("Print the result as one JSON object.")
def cost(
    *, folder: Path | None, rate: float | None, budget: float | None, prices: bool, as_json: bool, **profile: Any
) -> None:
    """Estimate the cost of jobs, of an idle month and of the worst day.

    Prints dollars for a million jobs of a kind, for a month of a synthesised stage without jobs, and for a day with
    each lane at its maximum concurrency and each API at its rate. Needs no AWS.

    Counts are those of the benchmark, and prices are AWS's list prices of us-east-1, without free tier and discounts.
    The time of a handler counts, and the calls that it makes do not.

    With --rate, also compares that load with the settings of the stage and the default quotas of AWS. All jobs belong
    to one tenant and one lane then, the worst case of both. Without a synthesised app, the settings are those of prod.
    """
    if prices:
        _show_prices(as_json=as_json)
        return
    try:
        jobs = Profile(**profile)
    except ProfileError as error:
        raise click.UsageError(str(error)) from error
    templates = _templates(folder)
    used = with_log_storage(of_one_job(jobs), jobs.log_retention_days)
    per_million = bill.lines(used.times(_JOBS))
    even = break_even_bytes(jobs)
    idle = idle_month.bill(parts_of(templates), log_retention_days=jobs.log_retention_days) if templates else None
    worst = worst_day.bill(worst_day.busy_stage(templates)) if templates else None
    dollars_per_job = bill.total(bill.lines(used))
    load = load_of(jobs, limits_of(templates), rate, dollars_per_job=dollars_per_job) if rate else None
    quota = daily_quota(budget, dollars_per_job=dollars_per_job) if budget else None
    if as_json:
        show_json(
            {
                "profile": jobs.as_json(),
                "per_million_jobs": bill.as_json(per_million),
                "payload_break_even_bytes": even,
                "idle_month": bill.as_json(idle) if idle else None,
                "worst_day": bill.as_json(worst) if worst else None,
                "load": load.as_json() if load else None,
                "daily_quota": quota,
            }
        )
        return
    _show_bill("a million jobs", per_million)
    if not jobs.inline:
        show(_payload_place(even))
    if quota:
        show(f"A tenant keeps to ${budget:,.2f} a day with: tidemill config set quotas.TENANT '{json.dumps(quota)}'")
    if idle:
        show("")
        _show_bill("an idle month", idle)
    if worst:
        show("")
        _show_bill("the worst day", worst)
    if not templates:
        say(f"The cost of an idle month and of the worst day are missing: cdk.out holds no synthesised app. {_SYNTH}")
    if load:
        show("")
        show_load(load)


def _templates(folder: Path | None) -> list[Template]:
    """Empty without a folder, unless the default one is there."""
    try:
        return list(synthesised_app.read(folder or Path("cdk.out")).templates.values())
    except AssemblyError as error:
        if folder is None:
            return []
        raise CommandError(str(error), remedy=_SYNTH) from error


def _show_bill(title: str, lines: Sequence[Line]) -> None:
    rows = [[line.name, _units(line.units), line.price.unit, f"{line.dollars:,.2f}"] for line in lines]
    rows.append(["total", "", "", f"{bill.total(lines):,.2f}"])
    show_table([title.upper(), "UNITS", "UNIT", "DOLLARS"], rows, numbers=(1, 3))


def _payload_place(even: int) -> str:
    if even == LARGEST_BODY_BYTES:
        return "An item costs no more than a file for a payload of any size."
    return f"A payload of more than {even:,} bytes costs less as a file: see the setting payload_item_bytes."


def _units(number: float) -> str:
    """Gigabyte-months and the like are small, and need their fractions."""
    return f"{number:,.0f}" if number >= _WHOLE or number == round(number) else f"{number:,.2f}"


def _show_prices(*, as_json: bool) -> None:
    found = list_prices.all_prices().values()
    if as_json:
        members = ("dollars", "units", "unit", "source", "quoted")
        prices = [{name: getattr(price, name) for name in members} for price in found]
        show_json({"region": list_prices.REGION, "prices": prices})
        return
    rows = [
        [visible(f"{price.dollars:.10g}"), f"{price.units:,.0f}", price.unit, price.quoted or "–", price.source]  # noqa: RUF001 - a dash
        for price in found
    ]
    show_table(["DOLLARS", "UNITS", "UNIT", "QUOTED", "SOURCE"], rows, numbers=(0, 1))


def load_of(profile: Profile, limits: StageLimits, jobs_per_second: float, *, dollars_per_job: float) -> Load:
    needed = workers(profile, jobs_per_second)
    return Load(
        jobs_per_second=jobs_per_second,
        dollars_per_month=dollars_per_job * jobs_per_second * DAYS_PER_MONTH * _SECONDS_PER_DAY,
        workers=needed,
        ramp_minutes=ramp_minutes(needed),
        bounds=bounds(profile, limits),
    )


def show_load(load: Load) -> None:
    show(
        f"{load.jobs_per_second:,.10g} jobs a second cost ${load.dollars_per_month:,.0f} a month and need "
        f"{load.workers:,.1f} workers at a time, which the mapping of an idle lane reaches in "
        f"{load.ramp_minutes:.1f} minutes."
    )
    rows = [
        [
            "binds" if load.binds(bound) else "",
            bound.name,
            f"{bound.jobs_per_second:,.0f}",
            bound.figure,
            bound.change,
            bound.remedy,
        ]
        for bound in load.bounds
    ]
    show_table(["", "BOUND", "JOBS/S", "FIGURE", "CHANGE", "HOW"], rows, numbers=(2,))
