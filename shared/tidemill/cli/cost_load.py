"""The load of `tidemill cost --rate`: its price by the month, and how far each part of a stage is from its bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidemill.cli.output import show, show_table
from tidemill.cost.bounds import Bound, bounds, ramp_minutes, workers
from tidemill.cost.job_usage import DAYS_PER_MONTH
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits

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
