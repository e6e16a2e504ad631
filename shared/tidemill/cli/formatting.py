"""Formats counts, times, ages, jobs and untrusted text. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.dead_letter_sweep import Swept
from tidemill.domain.states import State

#: A job as the HTTP API shows it.
JobView = Mapping[str, Any]

_UNITS: Final = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))
#: Shown instead of an absent value.
DASH: Final = "–"  # noqa: RUF001 - a dash, as in a printed table


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(duration: timedelta | None) -> str:
    """Whole units of the largest unit that fits: `3d`, `12m`, `42s`. Clocks differ, so a negative age becomes `0s`."""
    if duration is None:
        return DASH
    at_least_zero = max(duration, timedelta())
    return next(
        (f"{at_least_zero // unit}{symbol}" for unit, symbol in _UNITS if at_least_zero >= unit),
        f"{at_least_zero // timedelta(seconds=1)}s",
    )


def readable_time(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


def timestamp(value: datetime) -> str:
    """The format of the HTTP API: RFC 3339 with milliseconds."""
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """Escape characters that would move the cursor, colour the terminal or be invisible: job data is untrusted."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def visible_lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.splitlines())


def state_text(job: JobView) -> str:
    """The state of a job, and what explains it, on one line."""
    parts = [visible(job["state"])]
    if job.get("cancel_requested_at") and job["state"] == State.RUNNING:
        parts.append("cancel requested")
    if job.get("attempt"):
        parts.append(f"attempt {job['attempt']}")
    if job.get("hops"):
        parts.append(count(job["hops"], "hop"))
    if job.get("death"):
        parts.append(visible(job["death"]))
    if job["state"] in {State.SCHEDULED, State.RETRYING} and job.get("due"):
        parts.append(f"due {visible(job['due'])}")
    if job["state"] == State.PARKED and (wait := job.get("wait")):
        parts.append(f"waits for its {visible(wait['cause'])} {visible(wait['key'])} since {visible(wait['since'])}")
    return ", ".join(parts)


def progress_text(job: JobView) -> str:
    """In the unit that the handler chose; empty if it reports no progress."""
    progress = job.get("progress") or {}
    done, total = progress.get("done"), progress.get("total")
    return "" if done is None else f"{done}" if total is None else f"{done} of {total}"


def sweep_text(sweeps: Iterable[Swept]) -> str:
    """The sums over the dead-letter queues."""
    results = list(sweeps)
    failed = [one for one in results if one.failed]
    troubles = "".join(f" {count(one.failed, 'job')} could not be dispatched: {one.error}." for one in failed)
    return (
        f"DLQ messages: {sum(one.outdated for one in results)} deleted, "
        f"{sum(one.nudged for one in results)} nudged, {sum(one.kept for one in results)} kept.{visible(troubles)}"
    )
