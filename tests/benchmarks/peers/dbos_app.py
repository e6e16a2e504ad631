"""The DBOS program: `python -m tests.benchmarks.peers.dbos_app INDEX` runs an executor.

An executor with the id of a killed one recovers its workflows when it starts.
https://docs.dbos.dev/production/workflow-recovery
"""

import os
import sys
import threading

from dbos import DBOS, DBOSClient

from tests.benchmarks.peers.load import Submit
from tests.benchmarks.peers.system import JOBS_AT_ONCE, WORK_MILLISECONDS
from tests.benchmarks.peers.work import note, work

URL = os.environ["BENCH_DATABASE"].replace("postgresql://", "postgresql+psycopg://")
VERSION = "bench"


@DBOS.workflow(name="bench")  # type: ignore[untyped-decorator]
def bench(number: int, milliseconds: float) -> dict[str, bool]:
    done: dict[str, bool] = step(number, milliseconds)
    return done


@DBOS.step()  # type: ignore[untyped-decorator]
def step(number: int, milliseconds: float) -> dict[str, bool]:
    work(number, milliseconds)
    return {"done": True}


def run_worker(index: str) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "executor_id": f"bench-{index}",
            "application_version": VERSION,
            "log_level": "WARNING",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    DBOS.register_queue("bench", worker_concurrency=JOBS_AT_ONCE)
    note("ready")
    threading.Event().wait()


def submitter() -> Submit:
    client = DBOSClient(system_database_url=URL)

    def submit(number: int) -> None:
        options = {"workflow_name": "bench", "queue_name": "bench", "workflow_id": str(number), "app_version": VERSION}
        client.enqueue(options, number, WORK_MILLISECONDS)

    return submit


if __name__ == "__main__":
    run_worker(sys.argv[1])
