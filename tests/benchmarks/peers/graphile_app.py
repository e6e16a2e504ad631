"""Submits jobs to graphile-worker with its SQL function, as programs in other languages do.

https://worker.graphile.org/docs/sql-add-job
"""

import json
import os
import threading

import psycopg

from tests.benchmarks.peers.load import Submit
from tests.benchmarks.peers.system import WORK_MILLISECONDS

_OF_THREAD = threading.local()


def submitter() -> Submit:
    def submit(number: int) -> None:
        if not hasattr(_OF_THREAD, "connection"):
            _OF_THREAD.connection = psycopg.connect(os.environ["BENCH_DATABASE"], autocommit=True)
        payload = json.dumps({"number": number, "milliseconds": WORK_MILLISECONDS})
        _OF_THREAD.connection.execute("SELECT graphile_worker.add_job('bench', %s::json)", [payload])

    return submit
