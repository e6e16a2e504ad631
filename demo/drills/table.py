"""The table of the drills that ran."""

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from demo.drills.runner import Report

_TITLES: Final = (
    *("drill", "alarm", "detected s", "detected min", "recovered s", "jobs", "replayed", "replays that succeeded"),
    "other pages",
)


def table(reports: Sequence[Report], *, minute_seconds: float) -> Table:
    made = Table(title=f"Drills; a minute of the alarms has {minute_seconds:g} s")
    for title in _TITLES:
        # In 80 columns, an ellipsis would make `detected s` and `detected min` the same.
        made.add_column(title, overflow="fold")
    for report in reports:
        replays = report.replays
        made.add_row(
            *(report.name, report.alarm, f"{report.detected:.0f}", f"{report.detected / minute_seconds:.0f}"),
            *(f"{report.recovered:.0f}", str(report.jobs), str(replays.messages)),
            f"{replays.succeeded} of {replays.jobs}",
            ", ".join(sorted(report.other_pages)) or "none",
        )
    return made
