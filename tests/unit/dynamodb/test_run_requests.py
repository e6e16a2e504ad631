"""What the writes of a run change in its document, and on which document each insists. A settle has its own tests."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tests.support.builders import A_STEP, LEASE, NOW, SECOND, a_job, reference_to, with_changes
from tests.support.said_requests import said
from tidemill.application.ports import Checkpoint
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.history import Transition, Why
from tidemill.domain.states import State
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.dynamodb.steps import run_writes

AT = NOW + 10 * SECOND
JOB = a_job(generation=3)
RUNNING = with_changes(JOB, state=State.RUNNING, owner="t", attempt=2, open_runs=2, releases=1, due=NOW + LEASE)
FENCE = "owner = t"
LATER_THAN_BEFORE = f"(attribute_not_exists(checkpoint_at) OR checkpoint_at < {milliseconds(AT)['N']})"
SCHEMA = f"schema <= {SCHEMA_VERSION}"
NEXT = "generation = generation + 1"
INDEX = {"attention", "attention_at"}
CLAIMED = {
    *("state = running", "owner = t", f"claimed_at = {milliseconds(AT)['N']}", "ready_at = due"),
    *(f"due = {milliseconds(AT + LEASE)['N']}", "attempt = attempt + 1", "open_runs = if_not_exists(open_runs"),
}
KNOWN = [Transition(at=NOW, state=State.QUEUED, cause=Why.NUDGED)]

Write = Callable[[], Mapping[str, Any]]

WRITES: dict[str, tuple[Write, set[str], set[str], list[str]]] = {
    "claim": (
        partial(job_writes.claim, reference_to(JOB), token="t", now=AT, lease_end=AT + LEASE, worker="w"),
        CLAIMED,
        {"nudges"} | INDEX,
        [
            *("generation = 3", f"due <= {milliseconds(AT)['N']}"),
            "(attribute_not_exists(history) OR size(history) < 100)",
        ],
    ),
    # It replaces the history, so the length of that does not matter.
    "claim of a long history": (
        partial(job_writes.claim, reference_to(JOB), token="t", now=AT, lease_end=AT + LEASE, worker="w", known=KNOWN),
        CLAIMED,
        {"nudges"} | INDEX,
        ["generation = 3", f"due <= {milliseconds(AT)['N']}"],
    ),
    "release": (
        partial(job_writes.release, RUNNING, now=NOW, due=AT),
        {
            *("state = retrying", "attempt = 1", "open_runs = 1", "releases = 2", f"due = {milliseconds(AT)['N']}"),
            *("last_owner = t", NEXT),
        },
        {"owner", "holds", "hold_cause", "other_holds", "wait"},
        [FENCE],
    ),
    # Only conflicts are counted, since each of them makes the next pause longer.
    "release for another reason": (
        partial(job_writes.release, RUNNING, now=NOW, due=AT, cause=Why.CONTINUED),
        {
            *("state = retrying", "attempt = 1", "open_runs = 1", f"due = {milliseconds(AT)['N']}"),
            *("last_owner = t", NEXT),
        },
        {"owner", "holds", "hold_cause", "other_holds", "wait"},
        [FENCE],
    ),
    "unclaim": (
        partial(job_writes.unclaim, reference_to(JOB), token="t", now=AT),
        {
            *("state = retrying", "last_owner = t", f"due = {milliseconds(AT)['N']}"),
            *("attempt = attempt - 1", "open_runs = open_runs - 1", NEXT),
        },
        {"owner"},
        [FENCE],
    ),
    "checkpoint": (
        partial(run_writes.checkpoint, RUNNING, Checkpoint(state="s", done=1, total=2), now=AT),
        {
            *(f"checkpoint_at = {milliseconds(AT)['N']}", "checkpoint = s"),
            *("progress_done = 1", "progress_total = 2"),
        },
        set(),
        [FENCE, LATER_THAN_BEFORE],
    ),
    "checkpoint of nothing": (
        partial(run_writes.checkpoint, RUNNING, Checkpoint(), now=AT),
        {f"checkpoint_at = {milliseconds(AT)['N']}"},
        set(),
        [FENCE, LATER_THAN_BEFORE],
    ),
    "checkpoint at the beginning": (
        partial(run_writes.checkpoint, RUNNING, Checkpoint(state="", done=0, total=0), now=AT),
        {f"checkpoint_at = {milliseconds(AT)['N']}", "checkpoint = ", "progress_done = 0", "progress_total = 0"},
        set(),
        [FENCE, LATER_THAN_BEFORE],
    ),
    "first step": (
        partial(run_writes.record_step, RUNNING, A_STEP),
        {"steps = list_append(if_not_exists(steps"},
        set(),
        [FENCE, "attribute_not_exists(steps)"],
    ),
    "second step": (
        partial(run_writes.record_step, with_changes(RUNNING, steps=(A_STEP,)), A_STEP),
        {"steps = list_append(if_not_exists(steps"},
        set(),
        [FENCE, "size(steps) = 1"],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_what_it_is_for_and_insists_on_its_run(name: str) -> None:
    write, sets, removes, conditions = WRITES[name]

    said_sets, said_removes, said_conditions = said(write())

    # The history has tests of its own, and a call with several operands is cut at its first comma.
    changes = {each for each in said_sets if " = " in each and not each.startswith(("history", "schema"))}
    assert (changes, said_removes) == (sets, removes)
    assert said_conditions == [*conditions, SCHEMA]
