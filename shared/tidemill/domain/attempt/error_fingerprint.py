"""One name for all errors of one cause: the class and the message without what differs from job to job. Pure."""

import re
from typing import Final

from tidemill.domain.job import Job

#: In this order: quoted parts, ids, then what digits remain.
_VARIABLE: Final = (
    (re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`"""), "'…'"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
_LONGEST: Final = 120


def fingerprint(error_class: str, message: str) -> str:
    """Return the fingerprint of the first line of the message: the rest is often a dump."""
    text = message.strip().splitlines()[0] if message.strip() else ""
    for pattern, name in _VARIABLE:
        text = pattern.sub(name, text)
    shortened = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f"{error_class}: {shortened}" if shortened else error_class


def job_fingerprint(job: Job) -> str:
    """Return the fingerprint of the error that explains the state; else the reason of death, or an empty text."""
    error = job.causing_error
    return fingerprint(error.error_class, error.message) if error else str(job.death or "")
