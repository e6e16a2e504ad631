"""How the command line puts things: times, ages, numbers, and text that is safe to show. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.domain.states import State

#: A job as the HTTP API shows it.
JobView = Mapping[str, Any]

_UNITS: Final = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))
NOTHING: Final = "–"  # noqa: RUF001 - a dash, as in a printed table


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(span: timedelta | None) -> str:
    """In whole units of the largest that fits: `3d`, `12m`, `42s`. Clocks differ, so less than nothing is nothing."""
    if span is None:
        return NOTHING
    left = max(span, timedelta())
    return next(
        (f"{left // unit}{symbol}" for unit, symbol in _UNITS if left >= unit), f"{left // timedelta(seconds=1)}s"
    )


def instant(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


def timestamp(value: datetime) -> str:
    """As the HTTP API writes it: RFC 3339, in milliseconds."""
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """Without what would move the cursor, colour the terminal or hide itself: a job's texts are a stranger's."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def visible_lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.splitlines())


def standing(job: JobView) -> str:
    """How a job stands, in a few words."""
    said = [visible(job["state"])]
    if job.get("cancel_requested_at") and job["state"] == State.RUNNING:
        said.append("asked to end")
    if job.get("attempt"):
        said.append(f"attempt {job['attempt']}")
    if job.get("hops"):
        said.append(count(job["hops"], "hop"))
    if job.get("death"):
        said.append(visible(job["death"]))
    if job["state"] in {State.SCHEDULED, State.RETRYING} and job.get("due"):
        said.append(f"due {visible(job['due'])}")
    return ", ".join(said)


def how_far(job: JobView) -> str:
    """In whatever the handler counts; empty if it does not say."""
    progress = job.get("progress") or {}
    done, total = progress.get("done"), progress.get("total")
    return "" if done is None else f"{done}" if total is None else f"{done} of {total}"
