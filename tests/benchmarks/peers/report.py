"""Prints the figures of the peers as tables of Markdown."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.benchmarks.peers import phases
from tests.benchmarks.tables import table
from tidemill.cost.list_prices import DURABLE_OPERATIONS, MILLION, STATE_TRANSITIONS

TITLES: Final = {
    "clean": f"clean: {phases.RATE:g} jobs a second for {phases.CLEAN_SECONDS:g} s",
    "burst": f"burst: {phases.BURST_JOBS} jobs due at once",
    "overload": f"overload: {phases.OVERLOAD:g} times the capacity for {phases.OVERLOAD_SECONDS:g} s",
    "kills": f"kills: {phases.RATE:g} jobs a second for {phases.KILL_SECONDS:g} s, SIGKILL to a worker "
    f"{len(phases.KILLS_AT)} times",
}
_LATENCIES: Final = ["pickup p50, ms", "p95", "p99", "end to end p50, ms", "p95", "p99"]
_COUNTS: Final = ["jobs", "offered, jobs/s", "stored, jobs/s", "unfinished", "refused", "second runs", "second effects"]
_COSTS: Final = ["CPU of the producer, ms per job", "of workers", "of database or emulator", "round trips per job"]


def markdown(found: Mapping[str, Any]) -> str:
    return "\n\n".join(_parts(found)) + "\n"


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    systems = found["systems"]
    yield f"The load of the machine was {found['load']:.1f} at the end, on {found['processors']} processors."
    for phase, title in TITLES.items():
        figures = {name: system["phases"][phase] for name, system in systems.items() if phase in system["phases"]}
        if figures:
            yield table([title, *_LATENCIES], [[name, *_latencies(each)] for name, each in figures.items()])
            rows = [[name, *_counts(each), *_costs(each)] for name, each in figures.items()]
            yield table([phase, *_COUNTS, *_COSTS], rows)
    stated = [[name, each["setting"], each["guarantee"]] for name, each in systems.items()]
    yield table(["system", "setting", "guarantee"], stated)
    yield table(["by list price, dollars per million jobs of one step", "at least"], _list_prices())
    for name, reason in found["skipped"].items():
        yield f"Skipped {name}: {reason}."


def _latencies(found: Mapping[str, Any]) -> list[str]:
    return [_number(each) for figure in ("pickup", "end_to_end") for each in found[figure].values()]


def _counts(found: Mapping[str, Any]) -> list[str]:
    stored = found["jobs"] - found["unfinished"] - found["refused"]
    names = ("unfinished", "refused", "extra_begins", "extra_ends")
    rates = [_number(found["offered"]) if found["offered"] else "at once", _number(stored / found["seconds"])]
    return [f"{found['jobs']:,}", *rates, *(str(found[name]) for name in names)]


def _costs(found: Mapping[str, Any]) -> list[str]:
    return [f"{each:.2f}" for each in found["cpu"].values()] + [_number(found["round_trips"])]


def _list_prices() -> list[list[str]]:
    """Yield the prices of the orchestration alone: the function of the step comes on top.

    Step Functions counts a transition for each step (https://aws.amazon.com/step-functions/pricing/), and Lambda an
    operation for each step of a durable function (https://aws.amazon.com/lambda/pricing/).
    """
    return [
        ["Step Functions, standard workflow", f"{STATE_TRANSITIONS.of(MILLION):.2f}"],
        ["Lambda durable functions", f"{DURABLE_OPERATIONS.of(MILLION):.2f}"],
    ]


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"  # noqa: RUF001 - a dash
