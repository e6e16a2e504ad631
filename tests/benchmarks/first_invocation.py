"""`python -m tests.benchmarks.first_invocation BUILD FUNCTION`: its first invocation, with the event on stdin.

BUILD is `textbook` or `tidemill`, and FUNCTION is `work` or `submit`. The build `libraries` imports the libraries that
both builds import for this function, and does nothing else.

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
HANDLERS = {
    ("tidemill", "work"): "tidemill.entrypoints.work",
    ("tidemill", "submit"): "tidemill.entrypoints.submit",
    ("textbook", "work"): "tests.benchmarks.textbook.consumer",
    ("textbook", "submit"): "tests.benchmarks.textbook.producer",
}
#: Pydantic last: imported first, it makes Powertools import models of all events.
LIBRARIES = {
    "work": (
        "boto3",
        "aws_lambda_powertools.utilities.batch",
        "aws_lambda_powertools.utilities.idempotency",
        "pydantic.main",
    ),
    "submit": (
        "boto3",
        "aws_lambda_powertools.event_handler",
        "aws_lambda_powertools.utilities.idempotency",
        "pydantic.main",
    ),
}


class Context:
    """The Lambda context, as far as the builds read it."""

    aws_request_id = function_name = memory_limit_in_mb = invoked_function_arn = "first"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main() -> None:
    build, function = sys.argv[1:]
    event = json.load(sys.stdin)
    screen, sys.stdout = sys.stdout, io.StringIO()
    if build == "libraries":
        for name in LIBRARIES[function]:
            importlib.import_module(name)
    else:
        answer = importlib.import_module(HANDLERS[build, function]).handle(event, Context())
        assert answer == {"batchItemFailures": []} or answer.get("statusCode") == 202, answer
    milliseconds = time.process_time() * 1000
    screen.write(json.dumps({"CPU, ms": milliseconds, "memory, MB": peak_memory() / MEGABYTE}))


def peak_memory() -> float:
    """Bytes. `getrusage` would also count the process that started this one, before it became this program.

    https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kibibytes) * KIBIBYTE


if __name__ == "__main__":
    main()
