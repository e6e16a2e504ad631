"""`tidemill audit`: the commands of operators that changed or exported jobs, and the record that each one leaves."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click

from tidemill.application.operations.audit import AuditEntry, Auditor, Outcome
from tidemill.cli.formatting import DASH, readable_time, timestamp, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.operations.record_options import limited, record_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show_json_lines, show_table


@click.command()
@record_options
@json_option("Print each command as a line of JSON.")
@click.pass_obj
def audit(
    installation: Installation, *, limit: int | None, since: datetime | None, before: datetime | None, as_json: bool
) -> None:
    """List the commands of operators that changed or exported jobs.

    The newest comes first: redrive, cancel, signal, undo, replay, purge, export and migrate, of any tenant's
    jobs, reconcile, dlq sweep, schedules run, repair of resources, rollback and versions prune, and recover, which the
    restored table lists. Each entry has the operator as AWS STS verified it, the --reason, the options, the times, and
    how many were changed.
    A command without an end runs now, or was killed. Entries expire after audit_retention_days of the stage. `tidemill
    config history` lists the changes of the runtime configuration.
    """
    found = limited(installation.audit_log.entries(since=since, before=before), limit=limit, since=since)
    if as_json:
        show_json_lines(map(_as_json, found))
    elif entries := list(found):
        show_table(
            ("BEGAN", "COMMAND", "END", "CHANGED", "BY", "REASON", "OPTIONS"),
            [
                (
                    readable_time(entry.began_at),
                    entry.command,
                    entry.outcome or DASH,
                    ", ".join(f"{name} {number}" for name, number in entry.counts.items() if number),
                    entry.by,
                    entry.reason,
                    ", ".join(f"{name} {_text(value)}" for name, value in entry.options.items()),
                )
                for entry in entries
            ],
        )
    else:
        say("No entries.")


@contextmanager
def audited(
    installation: Installation,
    command: str,
    *,
    options: Mapping[str, Any],
    counts: Callable[[], Mapping[str, int]],
    reason: str = "",
    auditor: Auditor | None = None,
) -> Iterator[None]:
    """Record the command before it changes anything, and its end with `counts`, however it ends.

    `auditor` is that of another table than the one in use.
    """
    auditor = auditor or installation.auditor
    entry = auditor.begin(command, by=installation.caller, reason=reason, options=options)
    outcome = Outcome.FAILED
    try:
        yield
        outcome = Outcome.DONE
    except (KeyboardInterrupt, click.Abort):
        outcome = Outcome.INTERRUPTED
        raise
    finally:
        try:
            auditor.end(entry, outcome, counts())
        except Exception as error:  # noqa: BLE001 - the error of the command itself says more
            say(visible_lines(f"The end of this command was not recorded: {error}"))


def _text(value: Any) -> str:
    return visible(" ".join(map(str, value)) if isinstance(value, list) else str(value))


def _as_json(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "command": entry.command,
        "began_at": timestamp(entry.began_at),
        "ended_at": entry.ended_at and timestamp(entry.ended_at),
        "outcome": entry.outcome,
        "by": entry.by,
        "reason": entry.reason or None,
        "options": dict(entry.options),
        "counts": dict(entry.counts),
    }
