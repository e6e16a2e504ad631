"""`python -m demo.figures tenants` computes what a tenant at 1,000 times its load does to the others of its lane.

It needs no AWS: `demo.figures.tenant_model` is a model, since the embedded SQS has no fair queues. It fails if the
p95 of the others changes by more than `BOUND` with the quota and the cap, or without them for jobs as long as theirs.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from demo.figures.require import require
from demo.figures.tenant_model import Lane, Load

OTHERS: Final = 20
#: The load of each tenant in jobs a second, and the time of each of their runs.
RATE: Final = 1.0
SECONDS: Final = 0.5
TIMES: Final = 1_000
#: The mean of a run of the flood: as long as those of the others, and much longer.
FLOOD_SECONDS: Final = (0.5, 10.0)
#: `caps.default`, and `quotas.default` in jobs a second: 6,000 in a minute, a hundred times the load of a tenant.
CAP: Final = 20
QUOTA: Final = 100.0
#: The p95 of the others changes by this share at most.
BOUND: Final = 0.2
WARM_UP_SECONDS: Final = 60.0
MEASURED_SECONDS: Final = 180.0

LIMITS: Final = """\
Modelled: the lane with 50 invocations of 10 messages, the delay of the stream, SQS fair queues by their documented
rule, the turns of a cap, and the throttling of its item. Not modelled: the load of the flood on the API, the stream
and the table, and the messages that a mapping has received and not yet delivered. Start latency is the time from the
acceptance of a job to the start of its run. Nothing here was measured on AWS."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What protects the others. `bounded`: whether the bound must hold for a flood of jobs of this length."""

    name: str
    fair: bool = True
    cap: int | None = None
    quota: float | None = None

    def bounded(self, flood_seconds: float) -> bool:
        protected = self.cap is not None and self.quota is not None
        return protected or (self.fair and self.cap is None and flood_seconds <= SECONDS)


@dataclass(frozen=True, slots=True)
class Row:
    """The start latencies of the others, in seconds."""

    setup: Setup
    flood_seconds: float
    p95: float
    #: The share by which the p95 is above that with the flooding tenant at its usual load.
    change: float
    most_runs: int


SETUPS: Final = (
    Setup("no fair queue", fair=False),
    Setup("fair queue"),
    Setup("fair queue, cap", cap=CAP),
    Setup("fair queue, cap, quota", cap=CAP, quota=QUOTA),
)


def measure(
    setups: Sequence[Setup] = SETUPS,
    lengths: Sequence[float] = FLOOD_SECONDS,
    *,
    warm_up: float = WARM_UP_SECONDS,
    measured: float = MEASURED_SECONDS,
) -> Iterator[Row]:
    def lane(setup: Setup, flood_rate: float, flood_seconds: float) -> Lane:
        load = Load(others=OTHERS, rate=RATE, seconds=SECONDS, flood_rate=flood_rate, flood_seconds=flood_seconds)
        made = Lane(load, fair=setup.fair, cap=setup.cap)
        made.run_until(warm_up)
        made.latencies.clear()
        made.run_until(warm_up + measured)
        return made

    for flood_seconds in lengths:
        usual = _p95(lane(Setup("usual load"), RATE, flood_seconds).latencies)
        for setup in setups:
            flooded = lane(setup, min(TIMES * RATE, setup.quota or TIMES * RATE), flood_seconds)
            p95 = _p95(flooded.latencies)
            yield Row(setup, flood_seconds, p95, p95 / usual - 1, flooded.most_flood_runs)


def broken(rows: Sequence[Row]) -> list[Row]:
    """Those whose bound does not hold."""
    return [row for row in rows if row.setup.bounded(row.flood_seconds) and row.change > BOUND]


def main() -> None:
    console = Console()
    rows = list(measure())
    table = Table(
        "protected by",
        "s a run of the flood",
        "p95 of others, ms",
        "change",
        "most runs of the flood",
        "bound",
        title=f"{OTHERS} tenants beside one at {TIMES:,} times its load",
    )
    for row in rows:
        bound = f"{BOUND:.0%}" if row.setup.bounded(row.flood_seconds) else ""
        figures = (f"{row.flood_seconds:g}", f"{row.p95 * 1000:,.0f}", f"{row.change:+,.0%}", str(row.most_runs), bound)
        table.add_row(row.setup.name, *figures)
    console.print(table)
    console.print(LIMITS, highlight=False, soft_wrap=True)
    require(not broken(rows), f"the p95 of the others changes by more than {BOUND:.0%}: {broken(rows)}")


def _p95(latencies: Sequence[float]) -> float:
    return statistics.quantiles(latencies, n=20)[-1]
