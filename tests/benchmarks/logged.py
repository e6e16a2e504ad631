"""Bytes that the functions of both builds log for one job."""

from typing import Any, Final

from tests.benchmarks.builds import BUILDS, queued
from tests.benchmarks.log_meter import Log
from tests.benchmarks.loopback_client import Loopback

JOBS: Final = 10


def measure(aws: Loopback, log: Log) -> dict[str, float]:
    """By build."""
    found: dict[str, Any] = {}
    for build in BUILDS:
        build.work(queued(build, aws, {}, jobs=JOBS))
        before = log.bytes
        build.work(queued(build, aws, {}, jobs=JOBS))
        found[build.name] = (log.bytes - before) / JOBS
    return found
