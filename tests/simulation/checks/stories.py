"""Checks the story of a job, which `tidemill explain` prints: each event that the document keeps, in order of time."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from tests.simulation.checks.limit_keys import limit_in_words
from tests.simulation.checks.violation import Item, cap_in_words, group_of, map_of, maps_of, number_of, require, text_of
from tidemill.application.explain.job_story import story
from tidemill.domain.history import Why
from tidemill.domain.job import Job

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOLD: Final = "the story of a job is complete"
_SPAN: Final = r"\d+[smhd]"
_ANY: Final = ".+"


def tells_its_story(key: str, item: Item, job: Job) -> None:
    """`job` is what was read from `item`. Raises `Violation`."""
    told = story(job)
    if told != sorted(told, key=lambda event: event[0]):
        require(False, _TOLD, f"out of order: {told}", key)
    left = list(told)
    # If two events have one millisecond, the one that any text fits comes last.
    for at_ms, pattern in sorted(_events(item), key=lambda event: event[1] == _ANY):
        at = _EPOCH + timedelta(milliseconds=at_ms)
        for event in left:
            if event[0] == at and re.fullmatch(pattern, event[1]):
                left.remove(event)
                break
        else:
            require(False, _TOLD, f"no {pattern} at {at} in {told}", key)
    # `known_errors` has one for each run whose worker is presumed dead.
    others = [text for _, text in left if ": Crashed: " not in text]
    require(not others and len(left) == len(job.lost), _TOLD, f"too much: {left}", key)


def _events(item: Item) -> Iterator[tuple[int, str]]:
    """Milliseconds, and a pattern of the text, of each event that the document keeps."""
    entries = [_entry(entry["S"]) for entry in item.get("history", {"L": []})["L"]]
    claims = {at_ms for at_ms, _, cause in entries if cause == "claimed"}
    others = {at_ms for at_ms, _, cause in entries if cause != "claimed"}

    def is_at(name: str, pattern: str, among: set[int]) -> Iterator[tuple[int, str]]:
        """Unless a transition of that time says it."""
        if name in item and number_of(item, name) not in among:
            yield number_of(item, name), pattern

    state = text_of(item, "state")
    yield number_of(item, "created_at"), _submitted(item)
    for (at_ms, after, cause), following in zip_longest(entries, entries[1:]):
        yield at_ms, _transition(item, at_ms, after, cause, following)
    for name, described in (("errors", _failed), ("redrives", _redriven)):
        yield from (
            (number_of(each, "at"), described(each))
            for each in maps_of(item, name)
            if number_of(each, "at") not in others
        )
    run = f"attempt {number_of(item, 'attempt')}" if state == "running" else "the last run"
    yield from is_at("claimed_at", f"{run} began{_ready(item)}", claims)
    yield from is_at("checkpoint_at", f"the handler saved a checkpoint{_progress(item)}", set())
    for step in maps_of(item, "steps"):
        recorded = f"attempt {number_of(step, 'attempt')} recorded the step {text_of(step, 'name')}"
        yield number_of(step, "at"), re.escape(recorded)
    if (wait := map_of(item, "wait")) and number_of(wait, "since") not in others:
        what = "was parked, and waits" if state == "parked" else "had to wait"
        yield number_of(wait, "since"), _waits(wait, what)
    burst = map_of(item, "burst")
    moved = {at_ms for at_ms, _, cause in entries if cause == "moved"}
    if "first_moved_at" in burst and number_of(burst, "first_moved_at") not in moved:
        yield number_of(burst, "first_moved_at"), _moved(burst)
    if "first_replaced_at" in burst:
        replaced = f"a later submission replaced its payload, and {number_of(burst, 'replacements')} have so far"
        yield number_of(burst, "first_replaced_at"), replaced
    yield from is_at("nudged_at", "its message was lost or late, so it was sent again", others)
    yield from is_at("cancel_requested_at", f"a cancel was requested while it ran{_by(item)}", set())
    if undone := map_of(item, "undone"):
        why = f", because: {text_of(undone, 'reason')}" if "reason" in undone else ""
        by = f"undone by job {text_of(undone, 'job_id')}, as {text_of(undone, 'by')} asked{why}"
        yield number_of(undone, "at"), re.escape(by)
    yield from is_at("finished_at", f"it died: {text_of(item, 'death')}" if state == "dead" else state, others)


def _entry(text: str) -> tuple[int, str, str]:
    """Milliseconds, the state after it, and its cause."""
    at_ms, state, _, _, *cause = text.split(" ", 4)
    return int(at_ms), state, cause[0] if cause else "claimed" if state == "running" else state


_EXPIRED: Final = r"attempt \d+ did not begin: the job had become too old to be of use, and expired"


#: With an error of these classes that is final, a job dies right after its claim.
_NO_RUN: Final = {"Crashed", "DeadlinePassed", "NoAttemptLeft", "TooManyHops"}


def _no_run(error: Item) -> bool:
    return not error["retryable"]["BOOL"] and text_of(error, "error_class") in _NO_RUN


def _ends_without_run(item: Item, following: tuple[int, str, str] | None) -> bool:
    if following is None or following[2] == "claimed":
        return False
    errors = [each for each in maps_of(item, "errors") if number_of(each, "at") == following[0]]
    return following[2] == "expired" or any(_no_run(each) for each in errors)


def _transition(item: Item, at_ms: int, state: str, cause: str, following: tuple[int, str, str] | None) -> str:
    error, redrive = (
        next((each for each in maps_of(item, name) if number_of(each, "at") == at_ms), None)
        for name in ("errors", "redrives")
    )
    wait = map_of(item, "wait")
    if cause == "claimed":
        began = "a worker claimed it" if _ends_without_run(item, following) else r"attempt \d+ began"
        return f"{began}{_ready(item) if at_ms == number_of(item, 'claimed_at') else ''}(, on version .+)?"
    if cause == "cancelled" or (cause == "redriven" and redrive):
        return _redriven(redrive) if redrive and cause == "redriven" else f"cancelled{_by(item)}"
    # Another transition may be of the same millisecond.
    if error and cause not in frozenset(Why):
        return _failed(error) + (f"; it died: {re.escape(cause)}" if state == "dead" else "")
    if cause.startswith(("waits: ", "signal ", "moved")):
        return _moved(map_of(item, "burst")) if cause == "moved" else _signalled(cause)
    if state == "parked" and wait and number_of(wait, "since") == at_ms:
        return _waits(wait, "was parked, and waits")
    other = _EXPIRED if cause == "expired" else _ANY
    return f"it died: {re.escape(cause)}" if state == "dead" else other


def _moved(burst: Item) -> str:
    return f"a later submission moved it, and {number_of(burst, 'moves')} have so far"


def _signalled(cause: str) -> str:
    if cause.startswith("waits: "):
        return f"(attempt \\d+|the last run) ended, to wait for {re.escape(cause.removeprefix('waits: '))}"
    return re.escape(f"the {cause} came, for which it waited")


def _failed(error: Item) -> str:
    end = "" if error["retryable"]["BOOL"] else ", for good"
    failed = "no further run began" if _no_run(error) else f"attempt {number_of(error, 'attempt')} failed{end}"
    words = f"{failed}: {text_of(error, 'error_class')}: "
    again = f"; the next may begin after {_SPAN}" if "next_due" in error else ""
    return re.escape(words + text_of(error, "message")) + again


def _redriven(redrive: Item) -> str:
    why = f", because: {text_of(redrive, 'reason')}" if "reason" in redrive else ""
    died = f", after it had died: {text_of(redrive, 'death')}" if "death" in redrive else ""
    other = " with another payload" if "edited" in redrive else ""
    return re.escape(f"redriven{other} by {text_of(redrive, 'by')}{why}{died}")


def _by(item: Item) -> str:
    cancel = map_of(item, "cancel")
    if not cancel:
        return ""
    why = f", because: {text_of(cancel, 'reason')}" if "reason" in cancel else ""
    return re.escape(f" by {text_of(cancel, 'by')}{why}")


def _waits(wait: Item, what: str) -> str:
    if cap := cap_in_words(wait):
        return re.escape(f"it {what} for the {cap}")
    cause, key = text_of(wait, "cause"), text_of(wait, "key")
    if cause == "limit":
        return re.escape(f"it {what} for its {limit_in_words(key)} {key}")
    return re.escape(f"it {what} for {'the end of ' if cause == 'pause' else ''}its {cause} {key}")


def _ready(item: Item) -> str:
    return f" {_SPAN} after it was ready" if "ready_at" in item else ""


def _submitted(item: Item) -> str:
    text = f"submitted to the lane {text_of(item, 'lane')}"
    if "burst" in item:
        text += f", debounced, for {_SPAN} at most"
    elif "run_at" in item:
        text += f", to run {_SPAN} later"
    if group_of(item):
        text += f", as number {number_of(item, 'sequence')} of the group {re.escape(text_of(item, 'group'))}"
    text += f", into the batch {text_of(item, 'batch')}" if "batch" in item else ""
    place = map_of(item, "flow")
    text += f", as the node {text_of(place, 'node')} of the flow {text_of(place, 'id')}" if place else ""
    text += f", by the end of job {text_of(item, 'parent')}" if "parent" in item else ""
    text += f", to undo job {text_of(item, 'undoes')}" if "undoes" in item else ""
    return text + (f", to supersede job {text_of(item, 'supersedes')}" if "supersedes" in item else "")


def _progress(item: Item) -> str:
    if "progress_done" not in item:
        return ""
    of = f" of {number_of(item, 'progress_total')}" if "progress_total" in item else ""
    return f", {number_of(item, 'progress_done')}{of} done"
