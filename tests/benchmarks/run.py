"""All measurements of one run. Import it inside `loopback`, with the log in place of the standard output."""

import os
import platform
from typing import Any

from tests.benchmarks import cold_start, counted, dollars, instructions, logged, timed
from tests.benchmarks.budgets import SMALL
from tests.benchmarks.builds import BUILDS
from tests.benchmarks.log_meter import Log
from tests.benchmarks.loopback_client import Loopback


def measure(aws: Loopback, log: Log) -> dict[str, Any]:
    """The document that `make bench` writes: by part, then by build."""
    found: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "processors": os.cpu_count(), "load": os.getloadavg()},
        "counted": counted.measure(aws),
        "log_bytes": logged.measure(aws, log),
        "instructions": instructions.by_side(aws),
        "cpu": timed.cpu(aws),
        "wall": timed.wall(aws),
        "cold_start": cold_start.measure(aws),
    }
    found["dollars"] = {
        build.name: dollars.per_million(
            build.name, found["counted"][build.name][SMALL], found["wall"][build.name], found["log_bytes"][build.name]
        )
        for build in BUILDS
    }
    return found
