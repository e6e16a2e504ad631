"""CPU time and memory of first invocations in fresh processes, of both builds and their common libraries in turn."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from tests.benchmarks.builds import BUILDS, Build, queued
from tests.benchmarks.loopback_client import Loopback
from tidemill.names import Env
from tools.paths import ROOT

PROCESSES: Final = 11
#: Both builds load the types that they run, and no others.
JOB_PACKAGE: Final = "tests.benchmarks.jobs"
FUNCTIONS: Final = ("work", "submit")
CPU: Final = "CPU, ms"

#: What one process measured, by name.
Measured = Mapping[str, float]


def measure(aws: Loopback) -> dict[str, dict[str, float]]:
    """By build, and for `libraries`: the medians of each function.

    Each round measures all builds, so that a slow moment of the machine falls on each. `CPU, ratio of the rounds` of a
    build is the median of its ratios to the textbook build, and `libraries, % of the CPU` that of the common libraries.
    The first round writes the bytecode, and does not count.
    """
    found: dict[str, dict[str, float]] = {}
    for function in FUNCTIONS:
        rounds = [_round(function, aws) for _ in range(PROCESSES + 1)][1:]
        for build in rounds[0]:
            row = found.setdefault(build, {})
            for name in rounds[0][build]:
                row[f"{function}: {name}"] = median(each[build][name] for each in rounds)
            if build != "libraries":
                ratios = (each[build][CPU] / each["textbook"][CPU] for each in rounds)
                row[f"{function}: CPU, ratio of the rounds"] = median(ratios)
                parts = (each["libraries"][CPU] / each[build][CPU] for each in rounds)
                row[f"{function}: libraries, % of the CPU"] = 100 * median(parts)
    return found


def _round(function: str, aws: Loopback) -> dict[str, Measured]:
    found = {build.name: _first(build.name, function, _event(build, function, aws)) for build in BUILDS}
    return found | {"libraries": _first("libraries", function, {})}


def _event(build: Build, function: str, aws: Loopback) -> Mapping[str, Any]:
    return queued(build, aws, {}, jobs=1) if function == "work" else build.submission({})


def _first(build: str, function: str, event: Mapping[str, Any]) -> Measured:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        # Lambda runs no `site` packages of a virtual environment.
        [sys.executable, "-S", "-m", "tests.benchmarks.first_invocation", build, function],
        input=json.dumps(event),
        env=environment
        | {Env.JOB_PACKAGES: JOB_PACKAGE}
        | {"PYTHONPATH": os.pathsep.join([str(ROOT / "shared"), *sys.path])},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: Measured = json.loads(done.stdout)
    return measured
