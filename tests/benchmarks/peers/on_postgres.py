"""The systems whose only service is PostgreSQL: Procrastinate, graphile-worker and DBOS."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.benchmarks.peers import installed, postgres
from tests.benchmarks.peers.journal import Journal
from tests.benchmarks.peers.processes import WorkerProcesses, child_environment
from tests.benchmarks.peers.system import JOBS_AT_ONCE, Running, System

_PROGRAMS: Final = "tests.benchmarks.peers"
#: When the outcome of each job was stored: the number of the job, and seconds since 1970.
_STORED_BY_PROCRASTINATE: Final = """
    SELECT args->>'number', extract(epoch FROM at) FROM procrastinate_jobs AS jobs JOIN procrastinate_events AS events
    ON job_id = jobs.id WHERE type = 'succeeded' AND task_name = 'bench'"""
_STORED_BY_DBOS: Final = """
    SELECT workflow_uuid, coalesce(completed_at, updated_at) / 1000.0 FROM dbos.workflow_status
    WHERE status = 'SUCCESS' AND name = 'bench'"""


def _start(
    stack: ExitStack,
    folder: Path,
    *,
    name: str,
    submits: str,
    worker: Callable[[int], Sequence[str | Path]],
    stored: str,
    prepare: Sequence[str | Path] = (),
) -> Running:
    """`stored` is the statement for the outcomes; empty if the workers note them. `prepare` makes the schema."""
    server = stack.enter_context(postgres.running(folder))
    journal = Journal(folder / f"{name}.journal")
    url = server.create(name)
    # graphile-worker's own command reads DATABASE_URL.
    settings = child_environment(journal, BENCH_DATABASE=url, DATABASE_URL=url, BENCH_JOBS_AT_ONCE=str(JOBS_AT_ONCE))
    if prepare:
        installed.require(prepare, settings)

    def outcomes() -> Mapping[int, float]:
        if not stored:
            return {number: times[0] for number, times in journal.read().of("stored").items()}
        return {int(number): float(at) for number, at in server.query(name, stored)}

    return Running(
        workers=WorkerProcesses(worker, environment=settings, journal=journal, log=folder / f"{name}.log"),
        submits=submits,
        python=installed.python(),
        environment=settings,
        journal=journal,
        service_seconds=server.seconds,
        round_trips=lambda: server.statements(name),
        stored=outcomes,
    )


def _lacks() -> str:
    return installed.without_proc() or installed.without_postgres() or installed.without_python_packages()


PROCRASTINATE: Final = System(
    name="Procrastinate",
    setting="threads; LISTEN; retries stalled jobs every 5 s after 30 s without a heartbeat, the default",
    guarantee="at least once if the application retries stalled jobs; no fence on the end of a job",
    lacks=_lacks,
    start=lambda stack, folder: _start(
        stack,
        folder,
        name="procrastinate",
        submits=f"{_PROGRAMS}.procrastinate_app",
        worker=lambda _: [installed.python(), "-m", f"{_PROGRAMS}.procrastinate_app"],
        stored=_STORED_BY_PROCRASTINATE,
        prepare=[
            *(installed.python(), "-m", "procrastinate", "--app", f"{_PROGRAMS}.procrastinate_app.app"),
            *("schema", "--apply"),
        ],
    ),
)
GRAPHILE_WORKER: Final = System(
    name="graphile-worker, batched",
    setting="local queue of 20 jobs; completes in batches without delay; LISTEN",
    guarantee="at least once; a killed worker's jobs run again after four hours, or when an operator unlocks them",
    lacks=lambda: _lacks() or installed.without_graphile_worker(),
    start=lambda stack, folder: _start(
        stack,
        folder,
        name="graphile",
        submits=f"{_PROGRAMS}.graphile_app",
        worker=lambda _: [installed.node(), installed.NODE_FOLDER / "worker.mjs"],
        stored="",
        prepare=[
            *(installed.node(), installed.NODE_FOLDER / "node_modules" / "graphile-worker" / "dist" / "cli.js"),
            "--schema-only",
        ],
    ),
)
DBOS: Final = System(
    name="DBOS",
    setting="a workflow with one step; polls each second, the default; a new executor has the id of the killed one",
    guarantee="workflows resume at the last completed step; a step runs at least once",
    lacks=_lacks,
    start=lambda stack, folder: _start(
        stack,
        folder,
        name="dbos",
        submits=f"{_PROGRAMS}.dbos_app",
        worker=lambda index: [installed.python(), "-m", f"{_PROGRAMS}.dbos_app", str(index)],
        stored=_STORED_BY_DBOS,
    ),
)
