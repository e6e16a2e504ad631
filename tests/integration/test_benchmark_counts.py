"""What `make bench` counts is exact, so it is a gate: the figures of the design, and those of the textbook build."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tidemill.cost.job_usage import of_one_job, write_units
from tidemill.cost.measured import PAYLOAD_KEY_BYTES
from tidemill.cost.profile import Profile
from tools.paths import ROOT

#: By bytes of padding in the payload: table writes, write units, index write units, reads and calls of one job.
TEXTBOOK = {
    "0": (7, 7, 0, 0, 8),
    "1000": (7, 11, 0, 0, 8),
    "4000": (7, 20, 0, 0, 8),
    "16000": (7, 67, 0, 0, 8),
    "64000": (7, 255, 0, 0, 8),
}
#: A payload above 400 bytes is an item of its own, which takes one write and one read.
TIDEMILL = {
    "0": (3, 3, 0, 0, 3.1),
    "1000": (4, 5, 0, 1, 5.1),
    "4000": (4, 8, 0, 1, 5.1),
    "16000": (4, 19, 0, 1, 5.1),
    "64000": (4, 66, 0, 1, 5.1),
}
#: With grouped commit, in a batch of ten: a call for the claims, one that reads the documents, and one for the settles.
GROUPED = {
    "0": (3, 3, 0, 1, 1.4),
    "1000": (4, 5, 0, 2, 3.4),
    "4000": (4, 8, 0, 2, 3.4),
    "16000": (4, 19, 0, 2, 3.4),
    "64000": (4, 66, 0, 2, 3.4),
}
#: What no job needs that has no breaker, limit or quota, waits for no signal, and is never undone.
UNDER_STRAIN = {
    "application.breakers.breaker_use",
    "application.breakers.breakers",
    "application.admission.foreground",
    "application.limits.measured_run",
    "application.breakers.probe_election",
    "application.admission.quota_admission",
    "application.corrections.recorded_undo",
    "application.waiting.release",
    "application.admission.shed_submissions",
    "application.corrections.superseding",
    "application.corrections.undo",
    "domain.limits.adaptive_limit",
    "domain.breakers.breaker",
    "domain.limits.caps",
    "domain.breakers.downstream_errors",
    "domain.admission.governor",
    "domain.limits.limit_state",
    "domain.limits.limits",
    "domain.admission.quotas",
    "domain.waiting.signals",
    "domain.admission.strain",
    "domain.corrections.undo",
    "domain.waiting.waiting",
    "dynamodb.breakers.breaker_item",
    "dynamodb.limits.limit_item",
    "dynamodb.limits.limits",
    "dynamodb.admission.quota_items",
    "dynamodb.waiting.signal_writes",
    "dynamodb.admission.strain_item",
    "dynamodb.corrections.undo_writes",
    "worker.rest",
    # It is read for pauses too.
    "application.configuration",
    "domain.operations.runtime_configuration",
}
NAMES = ("table writes", "write units", "index write units", "reads", "calls")


def benchmark(*options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counted(*options: str) -> dict[str, Any]:
    return {
        build: {size: tuple(counts[name] for name in NAMES) for size, counts in by_size.items()}
        for build, by_size in benchmark("--counted", *options).items()
    }


@pytest.mark.slow
def test_the_builds_cost_what_the_page_of_performance_says() -> None:
    assert counted() == {"textbook": TEXTBOOK, "tidemill": TIDEMILL, "grouped": GROUPED}


@pytest.mark.slow
def test_the_listing_index_costs_one_more_write_unit() -> None:
    listed = {size: (writes, units, 1, reads, calls) for size, (writes, units, _, reads, calls) in TIDEMILL.items()}

    assert counted("--listing")["tidemill"] == listed


def test_a_job_that_needs_none_of_it_pays_two_percent_at_most_for_what_helps_under_strain() -> None:
    instructions = benchmark("--instructions")
    of_strain = {f"tidemill.{module}" for module in UNDER_STRAIN}
    assert not {module for module in of_strain if not find_spec(module)}

    share = sum(count for module, count in instructions.items() if module in of_strain) / sum(instructions.values())

    assert 0 < share <= 0.02


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("size", TIDEMILL)
def test_the_cost_model_has_the_counts_of_the_benchmark(size: str, *, grouped: bool) -> None:
    """It also has the deletion of a payload that is an item of its own."""
    writes, units, _, reads, _ = (GROUPED if grouped else TIDEMILL)[size]
    payload_bytes = len(json.dumps({"padding": "x" * int(size)}, separators=(",", ":")))

    used = of_one_job(Profile(payload_bytes=payload_bytes, result_bytes=13, listing=False, grouped=grouped))

    deleted = write_units(payload_bytes + PAYLOAD_KEY_BYTES) if writes > 3 else 0
    assert used.write_units == units + deleted
    # The payload of 64,000 bytes takes more than one unit.
    assert used.read_units >= reads
    assert bool(used.read_units) == bool(reads)
