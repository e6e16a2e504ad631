"""Formats counts, times, ages, jobs and untrusted text. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.dispatch.dead_letter_sweep import Swept
from tidemill.application.time_text import span
from tidemill.domain.operations.setting import Setting
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause

#: A job as the HTTP API shows it.
JobView = Mapping[str, Any]

#: Shown instead of an absent value.
DASH: Final = "–"  # noqa: RUF001 - a dash, as in a printed table


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(duration: timedelta | None) -> str:
    return DASH if duration is None else span(duration)


def readable_time(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


def set_by(setting: Setting) -> str:
    """Who set it, since when, and until when it is in force."""
    end = f"until {readable_time(setting.until)}" if setting.until else "until it is removed"
    return f"by {setting.by} since {readable_time(setting.at)}, {end}"


def because(reason: str) -> str:
    """The end of a line. Empty without a reason."""
    return f": {reason}" if reason else ""


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
        what = {
            Cause.PAUSE: "paused:",
            Cause.SIGNAL: "waits: signal",
            Cause.INPUT: "waits: input",
        }.get(wait["cause"], f"waits for its {visible(wait['cause'])}")
        parts.append(f"{what} {visible(wait['key'])} since {visible(wait['since'])}")
    return ", ".join(parts)


def progress_text(job: JobView) -> str:
    """In the unit that the handler chose; empty if it reports no progress."""
    progress = job.get("progress") or {}
    done, total = progress.get("done"), progress.get("total")
    return "" if done is None else f"{done}" if total is None else f"{done} of {total}"


def sweep_counts(sweeps: Iterable[Swept]) -> dict[str, int]:
    """The sums over the dead-letter queues, for a program."""
    results = list(sweeps)
    return {
        "deleted": sum(one.outdated for one in results),
        "nudged": sum(one.nudged for one in results),
        "kept": sum(one.kept for one in results),
        "failed": sum(one.failed for one in results),
    }


def sweep_text(sweeps: Iterable[Swept]) -> str:
    """The same sums, and each cause of a failure."""
    results = list(sweeps)
    counts = sweep_counts(results)
    failed = [one for one in results if one.failed]
    troubles = "".join(f" {count(one.failed, 'message')} could not be processed: {one.error}." for one in failed)
    return (
        f"DLQ messages: {counts['deleted']} deleted, {counts['nudged']} nudged, {counts['kept']} kept."
        f"{visible(troubles)}"
    )
