"""The Procrastinate program: `python -m tests.benchmarks.peers.procrastinate_app` runs a worker.

A killed worker's jobs come back only through a task of the application, which its documentation shows.
https://procrastinate.readthedocs.io/en/stable/howto/production/retry_stalled_jobs.html
"""

import asyncio
import os

import procrastinate

from tests.benchmarks.peers.load import THREADS, Submit
from tests.benchmarks.peers.system import JOBS_AT_ONCE, WORK_MILLISECONDS
from tests.benchmarks.peers.work import note, work

URL = os.environ["BENCH_DATABASE"]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, max_size=JOBS_AT_ONCE))


@app.task(name="bench")  # type: ignore[untyped-decorator]
def bench(number: int, milliseconds: float) -> None:
    """Not a coroutine, so Procrastinate runs it in a thread."""
    work(number, milliseconds)


@app.periodic(cron="* * * * * */5")  # type: ignore[untyped-decorator]
@app.task(queueing_lock="retry_stalled_jobs", pass_context=True)  # type: ignore[untyped-decorator]
async def retry_stalled_jobs(context: procrastinate.JobContext, timestamp: int) -> None:
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)


async def run_worker() -> None:
    async with app.open_async():
        note("ready")
        await app.run_worker_async(concurrency=JOBS_AT_ONCE)


def submitter() -> Submit:
    producer = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=URL, max_size=THREADS))
    producer.open()
    task = producer.configure_task("bench")
    return lambda number: task.defer(number=number, milliseconds=WORK_MILLISECONDS)


if __name__ == "__main__":
    asyncio.run(run_worker())
