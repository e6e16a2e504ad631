"""`python -m tests.benchmarks.limits` measures memory and CPU time of the worst bodies, and writes the docs.

Each is measured in a process of its own, which already has the functions and moto's AWS in memory.
"""

import os
import re
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, Final

import pytest

from tests.support.builders import a_job
from tests.support.deployed_functions import forget, mill_on
from tests.support.flow_calls import a_flow, node
from tests.support.http_events import call
from tests.support.in_memory_flows import InMemoryFlows
from tests.support.job_tables import table_on_moto
from tests.support.jobs.scripted import scripted
from tests.support.payload_bucket import PayloadBucket
from tests.support.worst_bodies import WorstBody, payloads_at_limit, worst_bodies
from tidemill.application.flows.flow_graphs import FlowGraphs
from tidemill.domain.batch_handlers.joint_call import MOST_JOBS
from tidemill.domain.flows.flows import LARGEST_FLOW_BYTES, MOST_NODES
from tidemill.entrypoints import control, submit
from tidemill.names import FLOW_PACKAGE, LARGEST_BODY_BYTES, Env
from tools.paths import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "limits-of-the-system.md"
_TABLE: Final = re.compile(r"(## Memory and CPU time\n\n.*?\n\n)\|.*?\n\n", re.DOTALL)
_HEADERS: Final = {"content-type": "application/json"}
_HEAD: Final = "| work | bytes of JSON | peak memory | its JSON | CPU time | its JSON |\n|---|---|---|---|---|---|"
#: More of them than a process keeps.
_FLOWS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input of some work."""

    work: str
    size_bytes: int
    name: str
    act: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Measured:
    case: Case
    megabytes: float
    seconds: float


def measured(case: Case) -> Measured:
    """Megabytes above those at the start, and seconds."""
    context = get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_measure, args=(case.act, there))
    child.start()
    there.close()
    megabytes, seconds = here.recv()
    child.join()
    return Measured(case, megabytes, seconds)


def _measure(act: Callable[[], object], answer: Any) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    act()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer.send(((peak - before) / 1024, time.process_time() - began))


def cases(flow: str) -> Iterator[Case]:
    """`flow` is the id of one, for the requests that change it."""
    yield from _requests(flow)
    yield from _runs()
    yield from _flows()


def _requests(flow: str) -> Iterator[Case]:
    for worst in worst_bodies():
        yield Case(
            work=f"`POST {worst.route}`", size_bytes=worst.most_bytes, name=worst.name, act=partial(_send, worst, flow)
        )


def _send(worst: WorstBody, flow: str) -> object:
    path = worst.route.replace("{id}", flow)
    function = control if path.endswith(("cancel", "go")) else submit
    return call(function, "POST", path, body=worst.of_size(worst.most_bytes), headers=_HEADERS)


def _runs() -> Iterator[Case]:
    for name, payload in payloads_at_limit().items():
        for work, jobs in ("a worker reads a payload", 1), (f"a worker reads {MOST_JOBS} payloads at once", MOST_JOBS):
            yield Case(
                work=work,
                size_bytes=jobs * LARGEST_BODY_BYTES,
                name=name,
                act=partial(list, map(scripted.parse, [payload] * jobs)),
            )


def _flows() -> Iterator[Case]:
    work = f"a function keeps the graphs of {_FLOWS} flows"
    yield Case(work=work, size_bytes=_FLOWS * LARGEST_FLOW_BYTES, name=f"{MOST_NODES:,} nodes", act=_keep_graphs)


def _keep_graphs() -> object:
    store, room = InMemoryFlows([]), LARGEST_FLOW_BYTES // MOST_NODES - 1
    graphs = FlowGraphs(store=store, payloads=store)
    for flow in map(str, range(_FLOWS)):
        named = (
            f'{{"name":"{flow}-{at}","type":"t","after":["{flow}-{at // 2}"],"payload":{{"a":["x"]}}}}'.ljust(room)
            for at in range(MOST_NODES)
        )
        graphs.of(a_job(id=flow, payload=f'{{"nodes":[{",".join(named)}]}}'))
    return graphs


def row(found: list[Measured]) -> str:
    """Return the row of one work, with its worst cases."""
    largest, slowest = max(found, key=lambda each: each.megabytes), max(found, key=lambda each: each.seconds)
    most = max(each.case.size_bytes for each in found)
    return (
        f"| {found[0].case.work} | {most:,} | {largest.megabytes:.0f} MB | {largest.case.name} "
        f"| {slowest.seconds:.2f} s | {slowest.case.name} |"
    )


def written(page: str, rows: list[str]) -> str:
    """The page with these rows."""
    table = "\n".join([_HEAD, *rows])
    text, count = _TABLE.subn(lambda found: f"{found[1]}{table}\n\n", page)
    assert count == 1, "the page has the section"
    return text


def main() -> None:
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    by_work: dict[str, list[Measured]] = defaultdict(list)
    with pytest.MonkeyPatch.context() as monkeypatch, table_on_moto() as table, mill_on(table, monkeypatch):
        monkeypatch.setenv(Env.FILES_BUCKET, PayloadBucket(table).name)
        monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
        forget()
        # It is stored as a file, so that the client of S3 is there, too.
        flow = a_flow(*[node(name, payload={"a": "x" * 250_000}) for name in "abc"])
        for case in cases(flow):
            by_work[case.work].append(measured(case))
    rows = [row(found) for found in by_work.values()]
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print("\n".join([_HEAD, *rows]))  # noqa: T201 - output of a command


if __name__ == "__main__":
    main()
