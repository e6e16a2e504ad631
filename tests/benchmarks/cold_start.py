"""CPU time and memory of the first invocation in fresh processes, of both builds in turn."""

import json
import os
import subprocess
import sys
from statistics import quantiles
from typing import Final

from tests.benchmarks.builds import BUILDS, Build, queued
from tests.benchmarks.loopback_client import Loopback
from tidemill.names import Env
from tools.paths import ROOT

PROCESSES: Final = 11
#: Both builds load the types that they run, and no others.
JOB_PACKAGE: Final = "tests.benchmarks.jobs"


def measure(aws: Loopback) -> dict[str, dict[str, float]]:
    """By build: the lower quartiles, as in `timed`. Without the first process of each, which writes the bytecode."""
    found: dict[str, list[dict[str, float]]] = {build.name: [] for build in BUILDS}
    for number in range(PROCESSES + 1):
        for build in BUILDS:
            measured = _first(build, aws)
            if number:
                found[build.name].append(measured)
    return {
        build: {name: quantiles([each[name] for each in measured], n=4)[0] for name in ("cpu", "memory")}
        for build, measured in found.items()
    }


def _first(build: Build, aws: Loopback) -> dict[str, float]:
    event = queued(build, aws, {}, jobs=1)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        # Lambda runs no `site` packages of a virtual environment.
        [sys.executable, "-S", "-m", "tests.benchmarks.first_invocation", build.name],
        input=json.dumps(event),
        env=environment
        | {Env.JOB_PACKAGES: JOB_PACKAGE}
        | {"PYTHONPATH": os.pathsep.join([str(ROOT / "shared"), *sys.path])},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured
