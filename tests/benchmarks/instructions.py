"""How many byte-code instructions a module, or a side, executes while ten jobs are submitted, published and run.

Counted by the interpreter, so a busy machine changes nothing. Instructions of C code do not count.
"""

from collections import Counter

from tests.benchmarks.builds import BUILDS, Build, lambda_event, queued
from tests.benchmarks.counted import JOBS
from tests.benchmarks.loopback_client import Loopback
from tests.support.counted_instructions import counting

#: The first batches fill caches, and read the configuration.
_WARM_UP = 2


def measure(build: Build, aws: Loopback) -> dict[str, int]:
    """By name of the module."""
    for _ in range(_WARM_UP):
        build.work(queued(build, aws, {}, jobs=JOBS))
    counts: Counter[str] = Counter()
    with counting(counts):
        build.work(queued(build, aws, {}, jobs=JOBS))
    return dict(counts)


def by_side(aws: Loopback) -> dict[str, dict[str, float]]:
    """By build: instructions for one job of producer, publisher and consumer."""
    return {build.name: _sides(build, aws) for build in BUILDS}


def _sides(build: Build, aws: Loopback) -> dict[str, float]:
    for _ in range(_WARM_UP):
        build.work(queued(build, aws, {}, jobs=JOBS))
    producer, publisher, consumer = Counter[str](), Counter[str](), Counter[str]()
    with counting(producer):
        for _ in range(JOBS):
            build.submit({})
    taken = aws.take()
    with counting(publisher):
        build.publish(taken)
    event = lambda_event([*taken["sent"], *aws.take()["sent"]])
    with counting(consumer):
        build.work(event)
    sides = {"producer": producer, "publisher": publisher, "consumer": consumer}
    return {name: counts.total() / JOBS for name, counts in sides.items()}
