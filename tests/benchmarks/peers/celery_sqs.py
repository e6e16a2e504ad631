"""Celery on SQS, with its results in DynamoDB, both on an embedded AWS of its own."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.peers import cpu, installed
from tests.benchmarks.peers.journal import Journal
from tests.benchmarks.peers.processes import WorkerProcesses, child_environment
from tests.benchmarks.peers.system import Running, System
from tidemill.local import emulator, environment, instance

_PROGRAM = "tests.benchmarks.peers.celery_app"


def _start(stack: ExitStack, folder: Path) -> Running:
    home = stack.enter_context(instance.owned())
    aws = stack.enter_context(emulator.tied(home))
    keys = environment.root_keys(home.name)
    journal = Journal(folder / "celery.journal")
    settings = child_environment(
        journal,
        BENCH_KEYS=f"{keys.access_key}:{keys.secret_key}",
        BENCH_AWS=f"127.0.0.1:{aws.port}",
        AWS_DEFAULT_REGION=environment.REGION,
        AWS_EC2_METADATA_DISABLED="true",
    )
    installed.require([installed.python(), "-m", _PROGRAM, "prepare"], settings)

    def stored() -> Mapping[int, float]:
        return {number: times[0] for number, times in journal.read().of("stored").items()}

    return Running(
        workers=WorkerProcesses(
            lambda _: [installed.python(), "-m", _PROGRAM],
            environment=settings,
            journal=journal,
            log=folder / "celery.log",
        ),
        submits=_PROGRAM,
        python=installed.python(),
        environment=settings,
        journal=journal,
        service_seconds=lambda: cpu.own(aws.pid),
        round_trips=lambda: journal.read().count("call"),
        stored=stored,
    )


CELERY = System(
    name="Celery, SQS and DynamoDB",
    setting="threads; late acknowledgement; visibility timeout 18 s (default: 30 minutes)",
    guarantee="at least once with late acknowledgement, which is not the default; no fence on the result",
    lacks=lambda: installed.without_proc() or installed.without_python_packages(),
    start=_start,
)
