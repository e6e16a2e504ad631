"""The Celery program: `python -m tests.benchmarks.peers.celery_app [prepare]` runs a worker, or makes its table.

A killed worker's messages come back only with late acknowledgement: the default acknowledges before the run.
https://docs.celeryq.dev/en/stable/userguide/configuration.html#task-acks-late
https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/sqs.html
"""

import os
import sys
from typing import Any

from botocore.httpsession import URLLib3Session
from celery import Celery, signals
from kombu.asynchronous.http.curl import CurlClient

from tests.benchmarks.peers.load import Submit
from tests.benchmarks.peers.system import JOBS_AT_ONCE, WORK_MILLISECONDS
from tests.benchmarks.peers.work import note, work

VISIBILITY_SECONDS = 18

keys, address = os.environ["BENCH_KEYS"], os.environ["BENCH_AWS"]
app = Celery("bench", broker=f"sqs://{keys}@{address}//", backend=f"dynamodb://{keys}@{address}/celery?read=1&write=1")
app.conf.update(
    broker_transport_options={
        "region": "us-east-1",
        "is_secure": False,
        "visibility_timeout": VISIBILITY_SECONDS,
        "wait_time_seconds": 10,
    },
    dynamodb_endpoint_url=f"http://{address}",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="bench",
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


@app.task(name="bench")  # type: ignore[untyped-decorator]
def bench(number: int, milliseconds: float) -> dict[str, bool]:
    work(number, milliseconds)
    return {"done": True}


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def ready(**_: Any) -> None:
    note("ready")


@signals.task_success.connect  # type: ignore[untyped-decorator]
def stored(sender: Any, **_: Any) -> None:
    """Celery sends this after it has stored the result."""
    note("stored", sender.request.args[0])


def submitter() -> Submit:
    count_calls()
    return lambda number: bench.delay(number, WORK_MILLISECONDS)


def count_calls() -> None:
    """Note each HTTP request: boto3's, and those that the transport makes itself to receive and delete."""
    for owner, name in ((URLLib3Session, "send"), (CurlClient, "add_request")):
        setattr(owner, name, _noted(getattr(owner, name)))


def _noted(call: Any) -> Any:
    def noting(*arguments: Any, **options: Any) -> Any:
        note("call")
        return call(*arguments, **options)

    return noting


def main() -> None:
    if sys.argv[1:] == ["prepare"]:
        # Makes the table of the results. Workers that start at the same time would both make it.
        _ = app.backend.client
        return
    count_calls()
    app.worker_main(
        ["worker", "--pool=threads", f"--concurrency={JOBS_AT_ONCE}", "--without-gossip", "--without-mingle"]
    )


if __name__ == "__main__":
    main()
