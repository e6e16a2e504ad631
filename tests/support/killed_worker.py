"""`python -m tests.support.killed_worker NUMBER`: a worker with a batch of jobs, of which one ends the process.

The handler of that job first waits until all other jobs have succeeded but one, which is under way. The lines go to
standard output, as in Lambda, and the states of the jobs to standard error.
"""

import json
import os
import sys
import threading
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.support.deployed_functions import Context, Mill, mill_on
from tests.support.job_tables import table_on_moto
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.attempt.run import Run
from tidemill.names import Env

#: How long the handler waits for the lines of the other jobs, so that the test fails and does not hang.
STANDARD_ERROR: Final = 2
JOB_TIMEOUT: Final = timedelta(seconds=60)


class _Output:
    """Standard output that says when enough lines were written."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._stream = sys.stdout
        self.enough = threading.Event()

    def write(self, text: str) -> int:
        self._wanted -= text.count('"message":"succeeded"')
        if self._wanted == 0:
            self.enough.set()
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def main(jobs: int) -> None:
    output = _Output(wanted=jobs - 2)
    sys.stdout = output
    under_way = threading.Event()
    with table_on_moto() as table, pytest.MonkeyPatch.context() as patch, mill_on(table, patch) as mill:

        def handler(payload: Any, _run: Run) -> None:
            if payload.do == "wait":
                under_way.set()
                threading.Event().wait()
            if payload.do == "kill":
                under_way.wait(PATIENCE_SECONDS)
                output.enough.wait(PATIENCE_SECONDS)
                # Not by the stream, which would make it a line of the handler.
                os.write(STANDARD_ERROR, json.dumps(_states(mill, ids)).encode())
                os._exit(1)

        mill.script.handler = handler
        patch.setenv(Env.JOB_TIMEOUT_SECONDS, str(JOB_TIMEOUT.total_seconds()))
        ids = [mill.accepted({"do": do}) for do in ("kill", "wait", *["succeed"] * (jobs - 2))]
        mill.publish()
        records = [record for _ in range(jobs) for record in mill.receive()["Records"]]
        mill.work({"Records": records}, Context(remaining=2 * JOB_TIMEOUT))


def _states(mill: Mill, ids: list[str]) -> dict[str, str]:
    return {job_id: mill.job(job_id).state for job_id in ids}


if __name__ == "__main__":
    main(int(sys.argv[1]))
