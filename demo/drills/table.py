"""The table of the drills that ran."""

from collections.abc import Sequence

from rich.table import Table

from demo.drills.runner import Report


def table(reports: Sequence[Report], *, minute_seconds: float) -> Table:
    made = Table(
        *("drill", "alarm", "detected s", "detected min", "recovered s", "jobs", "replayed", "replays that succeeded"),
        "other pages",
        title=f"Drills; a minute of the alarms has {minute_seconds:g} s",
    )
    for report in reports:
        replays = report.replays
        made.add_row(
            *(report.name, report.alarm, f"{report.detected:.0f}", f"{report.detected / minute_seconds:.0f}"),
            *(f"{report.recovered:.0f}", str(report.jobs), str(replays.messages)),
            f"{replays.succeeded} of {replays.jobs}",
            ", ".join(sorted(report.other_pages)) or "none",
        )
    return made
