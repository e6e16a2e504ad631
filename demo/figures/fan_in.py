"""`python -m demo.figures fan-in` lets 10,000 jobs end in one, and fails unless that one comes into being exactly once.

It submits the jobs of a batch, and then those of a flow, to the embedded AWS, and reads the stream of the table: each
write is one record. The read units of the looks follow from the records.
"""

from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from demo.figures.batch_fan_in import BatchFanIn
from demo.figures.fan_in_costs import FanIn
from demo.figures.flow_fan_in import FlowFanIn
from demo.figures.require import require
from demo.figures.stream_log import StreamLog
from tidemill.local.lifecycle import App, deployed
from tidemill.names import Env

JOBS: Final = 10_000
JOB_TIMEOUT_SECONDS: Final = 50
FUNCTION_TIMEOUT_SECONDS: Final = 60


def _give_workers_time(app: App) -> None:
    """Give the workers the time of `prod`. A look reads 10,000 documents, for which two seconds may be too short."""
    app.client("lambda").update_function_configuration(
        FunctionName=app.functions["work"], Timeout=FUNCTION_TIMEOUT_SECONDS
    )
    app.set_function_variable("work", Env.JOB_TIMEOUT_SECONDS, str(JOB_TIMEOUT_SECONDS))


def main() -> None:
    console = Console()
    with deployed(console) as app:
        _give_workers_time(app)
        kinds = (BatchFanIn, FlowFanIn)
        found = [
            kind(app, StreamLog(app)).run(JOBS, lambda text: console.print(text, highlight=False)) for kind in kinds
        ]
    report(console, found)


def report(console: Console, found: Sequence[FanIn]) -> None:
    """Raises `WaitError` if one of them is not as promised."""
    table = Table("", *(each.name for each in found), title="Fan-in")
    rows: dict[str, Callable[[FanIn], str]] = {
        "jobs": lambda each: f"{each.jobs:,}",
        "table writes per job": lambda each: f"{sum(each.writes.values()) / each.jobs:.2f}",
        "of them to the job, to pages or cursors": lambda each: (
            f"{each.writes['job'] / each.jobs:.2f}, {each.writes['page'] / each.jobs:.2f}"
        ),
        "looks": lambda each: str(len(each.looks)),
        "read units of all looks, per job": lambda each: f"{sum(each.looks):,}, {sum(each.looks) / each.jobs:.2f}",
        "from the close to the last end": lambda each: f"{each.took_seconds:.0f} s",
        "from the last end to the callback": lambda each: f"{each.delay_seconds:.1f} s",
        "callbacks": lambda each: str(each.callbacks),
    }
    for title, cell in rows.items():
        table.add_row(title, *map(cell, found))
    console.print(table)
    for each in found:
        require(not each.faults, f"{each.name}: {'; '.join(each.faults)}")
