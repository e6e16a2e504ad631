"""`python -m tests.benchmarks.first_invocation BUILD`: the first invocation of a worker, with the event on stdin.

Prints the CPU time of the whole process in milliseconds, and its peak memory in megabytes. Imports nothing that the
function would not, before the clock is read: it runs in a fresh process that `cold_start` starts.
"""

import importlib
import io
import json
import sys
import time
from pathlib import Path

MEGABYTE = 1e6
KIBIBYTE = 1024
HANDLERS = {"tidemill": "tidemill.entrypoints.work", "textbook": "tests.benchmarks.textbook.consumer"}


class Context:
    """The Lambda context, as far as the builds read it."""

    aws_request_id = function_name = memory_limit_in_mb = invoked_function_arn = "first"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main() -> None:
    event = json.load(sys.stdin)
    screen, sys.stdout = sys.stdout, io.StringIO()
    answer = importlib.import_module(HANDLERS[sys.argv[1]]).handle(event, Context())
    milliseconds = time.process_time() * 1000
    assert answer == {"batchItemFailures": []}, answer
    screen.write(json.dumps({"cpu": milliseconds, "memory": peak_memory() / MEGABYTE}))


def peak_memory() -> float:
    """Bytes. `getrusage` would also count the process that started this one, before it became this program.

    https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kibibytes) * KIBIBYTE


if __name__ == "__main__":
    main()
