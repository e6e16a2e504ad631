"""Checks the story of a job, which `tidemill explain` prints: each event that the document keeps, in order of time."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.simulation.checks.violation import Item, map_of, maps_of, number_of, require, text_of
from tidemill.application.job_story import story
from tidemill.domain.job import Job

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOLD: Final = "the story of a job is complete"
_SPAN: Final = r"\d+[smhd]"


def tells_its_story(key: str, item: Item, job: Job) -> None:
    """`job` is what was read from `item`. Raises `Violation`."""
    told = story(job)
    require(told == sorted(told, key=lambda event: event[0]), _TOLD, f"out of order: {told}", key)
    left = list(told)
    for at_ms, pattern in _events(item):
        at = _EPOCH + timedelta(milliseconds=at_ms)
        found = next((event for event in left if event[0] == at and re.fullmatch(pattern, event[1])), None)
        if found is None:
            require(False, _TOLD, f"no {pattern} at {at} in {told}", key)
        else:
            left.remove(found)
    # `known_errors` has one for each run whose worker is presumed dead.
    others = [text for _, text in left if ": Crashed: " not in text]
    require(not others and len(left) == len(job.lost), _TOLD, f"too much: {left}", key)


def _events(item: Item) -> Iterator[tuple[int, str]]:
    """Milliseconds, and a pattern of the text, of each event that the document keeps."""

    def is_at(name: str, pattern: str) -> Iterator[tuple[int, str]]:
        if name in item:
            yield number_of(item, name), pattern

    state = text_of(item, "state")
    yield number_of(item, "created_at"), _submitted(item)
    for error in maps_of(item, "errors"):
        end = "" if error["retryable"]["BOOL"] else ", for good"
        words = f"attempt {number_of(error, 'attempt')} failed{end}: {text_of(error, 'error_class')}: "
        again = f"; next attempt after {_SPAN}" if "next_due" in error else ""
        yield number_of(error, "at"), re.escape(words + text_of(error, "message")) + again
    for redrive in maps_of(item, "redrives"):
        died = f", after it had died: {text_of(redrive, 'death')}" if "death" in redrive else ""
        yield number_of(redrive, "at"), re.escape(f"redriven by {text_of(redrive, 'by')}{died}")
    run = f"attempt {number_of(item, 'attempt')}" if state == "running" else "the last run"
    yield from is_at("claimed_at", f"{run} began" + (f", {_SPAN} after it was ready" if "ready_at" in item else ""))
    yield from is_at("checkpoint_at", f"the handler saved a checkpoint{_progress(item)}")
    if wait := map_of(item, "wait"):
        what = "was parked, and waits" if state == "parked" else "had to wait"
        words = f"it {what} for its {text_of(wait, 'cause')} {text_of(wait, 'key')}"
        yield number_of(wait, "since"), re.escape(words)
    yield from is_at("nudged_at", "reconcile sent its message again")
    yield from is_at("cancel_requested_at", "a cancel was requested while it ran")
    yield from is_at("finished_at", f"died: {text_of(item, 'death')}" if state == "dead" else state)


def _submitted(item: Item) -> str:
    text = f"submitted to the lane {text_of(item, 'lane')}"
    if "run_at" in item:
        text += f", to run {_SPAN} later"
    if "group" in item:
        text += f", as number {number_of(item, 'sequence')} of the group {re.escape(text_of(item, 'group'))}"
    return text + (f", by the success of job {text_of(item, 'parent')}" if "parent" in item else "")


def _progress(item: Item) -> str:
    if "progress_done" not in item:
        return ""
    of = f" of {number_of(item, 'progress_total')}" if "progress_total" in item else ""
    return f", {number_of(item, 'progress_done')}{of} done"
