"""A handler that ends the process of its worker costs the lines of the runs under way, and no others."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

JOBS, WORKERS = 20, 2


def killed_worker() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The lines of a worker that was killed, and the states of its jobs at that moment."""
    command = [sys.executable, "-m", "tests.support.killed_worker", str(JOBS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], json.loads(done.stderr)


def test_a_killed_worker_loses_the_lines_of_its_own_runs_only() -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = list(pool.map(lambda _: killed_worker(), range(WORKERS)))

    lines = [line for lines, _ in workers for line in lines]
    states = {job_id: state for _, of_worker in workers for job_id, state in of_worker.items()}
    succeeded = {job_id for job_id, state in states.items() if state == "succeeded"}
    assert Counter(states.values()) == {"succeeded": 36, "running": 4}
    assert {line["job_id"] for line in lines if line["message"] == "succeeded"} == succeeded
    assert {line["job_id"] for line in lines if line["message"] == "claimed"} == states.keys()
    for metric, number in (("JobsSubmitted", 40), ("JobsSucceeded", 36)):
        assert sum(line.get(metric, 0) for line in lines) == number
    assert len([line for line in lines if "AttemptDuration" in line]) == 36
