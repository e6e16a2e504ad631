"""The page of the limits says the numbers that the engine enforces."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tidemill import names
from tidemill.application import ports
from tidemill.application.attempt import grouped_commit, handler_results
from tidemill.application.submission import validation
from tidemill.domain import time_constants
from tidemill.domain.attempt import retry
from tidemill.domain.batch_handlers import joint_call
from tidemill.domain.batches import batches
from tidemill.domain.corrections import undo
from tidemill.domain.events import events
from tidemill.domain.flows import flows
from tidemill.domain.limits import adaptive_limit
from tidemill.domain.operations import runtime_configuration
from tidemill.domain.steps import steps
from tidemill.domain.submission import tenants
from tidemill.dynamodb import transactions
from tidemill.dynamodb.debounce import debounce_writes

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "limits-of-the-system.md"
_ROWS = dict(line.strip("| ").split(" | ", 1) for line in _PAGE.read_text().splitlines() if line.count(" | ") == 1)
_DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("body of a submission", f"{names.LARGEST_BODY_BYTES // 1024} KiB of JSON"),
        ("body of a batch", f"{names.LARGEST_BATCH_BODY_BYTES:,} bytes and {names.LARGEST_BATCH} jobs"),
        ("result", f"{handler_results.LARGEST_RESULT_BYTES // 1024} KiB of JSON"),
        ("result", f"a signal {validation.DEEPEST_STORED} levels of objects and lists"),
        ("result", f"a payload has {validation.DEEPEST_NESTING}"),
        ("checkpoint", f"{handler_results.LARGEST_CHECKPOINT_BYTES // 1024} KiB of JSON"),
        (
            "result of a [step]",
            f"{steps.LARGEST_STEP_BYTES // 1024} KiB and {steps.LARGEST_STEPS_BYTES // 1024} KiB of JSON",
        ),
        ("payload of an undo", f"{undo.LARGEST_UNDO_BYTES // 1024} KiB of JSON"),
        ("name of a group", f"1 to {validation.LONGEST_NAME_BYTES} bytes"),
        ("tenant", f"{tenants.LONGEST_TENANT} visible ASCII characters"),
        ("one transaction", f"{transactions.MOST_ENTRIES} entries"),
        ("delay, `run_at`", f"{time_constants.LONGEST_SPAN // _DAY} days"),
        ("backoff", f"{retry.DEFAULT_BACKOFF_CAP_SECONDS // 60:.0f} minutes"),
        ("a flow", f"{flows.LONGEST_FLOW // _DAY} days"),
        ("a flow", f"kept for {flows.NODES_KEPT // _DAY} days"),
        ("open batches", f"{batches.LONGEST_OPEN // _DAY} days"),
        ("attempts", f"{names.LARGEST_MAX_ATTEMPTS}"),
        ("steps of a job", f"{steps.MOST_STEPS}"),
        ("jobs of a [batch]", f"{batches.LARGEST_JOB_COUNT:,}"),
        ("nodes of a [flow]", f"{flows.MOST_NODES:,}, with {flows.MOST_EDGES:,} edges"),
        ("nodes of a [flow]", f"{flows.MOST_ADDED} in an addition, and {flows.MOST_ADDITIONS:,} additions"),
        ("nodes of a [flow]", f"all nodes together {flows.LARGEST_FLOW_BYTES // 1024**2} MiB"),
        ("consumers of an [event]", f"{events.MOST_CONSUMERS}"),
        ("jobs of one call of a [batch handler]", f"{joint_call.MOST_JOBS}"),
        ("jobs claimed or settled in one call", f"{ports.MOST_TOGETHER},"),
        ("wait of a claim and of a settle", f"{grouped_commit.LONGEST_WAIT_SECONDS} s each"),
        ("hops", f"{retry.RetryPolicy().max_hops:,}, unless the type says otherwise"),
        ("concurrency per key", f"{adaptive_limit.LARGEST_CONCURRENCY}"),
        ("size of the runtime configuration", f"{runtime_configuration.LARGEST_DOCUMENT // 1024} KiB"),
        ("a debounced job that has not begun", f"for {debounce_writes.KEPT // _DAY} days after the end of its burst"),
    ],
    # Without the number, so that another one does not change the name of the test.
    ids=lambda value: value if any(item.startswith(value) for item in _ROWS) else "states",
)
def test_the_page_says_what_the_engine_enforces(row: str, says: str) -> None:
    limit = next(limit for item, limit in _ROWS.items() if item.startswith(row))

    # The text matches as whole words: "0 nodes" is a part of "100 nodes".
    assert re.search(rf"(?<![\w.,]){re.escape(says)}(?!\w)", limit.replace("`", ""))
