"""`tidemill export`: write jobs as JSON lines to a file or a bucket."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import IO, Any, Final

import click

from tidemill.application.job_filter import JobFilter
from tidemill.application.job_view import operator_view, payload_of, record
from tidemill.application.ports import UnreadableItem
from tidemill.cli.control.job_filter_options import as_options, job_filter_options, pace_options
from tidemill.cli.control.scanned_jobs import scanned_jobs
from tidemill.cli.errors import CommandError, report_unreadable_item
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.operations.export_target import TARGET, FileTarget, ObjectTarget
from tidemill.cli.options import json_option, read_units_option, reason_option
from tidemill.cli.output import progress_bar, show, show_json
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

_STATES: Final = click.Choice(sorted(map(str, State)))
#: How many jobs are held at a time with their payloads, of at most 1 MB each, and how many payloads are read at once.
_BATCH: Final = 16
_THREADS: Final = 8


@click.command()
@job_filter_options
@click.option("--state", "states", multiple=True, type=_STATES, metavar="STATE", help="Jobs in this state; repeatable.")
@click.option(
    "--to", "target", type=TARGET, required=True, metavar="TARGET", help="A new file, or a new s3://BUCKET/KEY."
)
@click.option("--payloads", is_flag=True, help="With payload, result and checkpoint of each job.")
@pace_options
@read_units_option()
@reason_option()
@json_option("Print the result as one JSON object.")
@click.pass_obj
def export(
    installation: Installation,
    *,
    wanted: JobFilter,
    states: tuple[str, ...],
    target: FileTarget | ObjectTarget,
    payloads: bool,
    limit: int | None,
    rate: int | None,
    read_units: int,
    reason: str,
    as_json: bool,
) -> None:
    """Write jobs as JSON to a file or bucket.

    One line for each job, of any tenant. A job must match all options; without any, every job is exported. Scans the
    whole table, at a limited rate. Each job is exported as it is when the scan reaches it.

    The target appears when the export is complete, and never in part. An existing file or object is not replaced. An
    interrupted export leaves nothing, and the next one begins anew: to export much, write one file for each day with
    --submitted-since and --submitted-until.

    The exit code is 1 if jobs could not be read, or payloads are missing. The target then has all others.

    `tidemill audit` shows who exported what.
    """
    wanted = replace(wanted, states=tuple(map(State, states)))
    written = _Written()
    options = as_options(wanted, limit=limit, rate=rate, to=target.name, payloads=payloads)
    jobs = islice(scanned_jobs(installation, wanted, read_units, written.skip), limit)
    recorded = audited(installation, "export", options=options, counts=lambda: written.numbers, reason=reason)
    with recorded:
        with target.opened() as file, progress_bar("jobs", None) as advance:
            for line in lines(installation, jobs, payloads=payloads, rate=rate):
                written.write(file, line)
                advance()
        written.in_place = True
        if as_json:
            show_json({"to": target.name, **written.numbers})
        else:
            show(f"Exported {count(written.jobs, 'job')} to {target.name}.")
        written.raise_for_any_missing(target.name)


class _Written:
    """The counts of one export."""

    def __init__(self) -> None:
        self.jobs = 0
        #: Whether the target has them.
        self.in_place = False
        self.unreadable = 0
        #: Jobs without their payload, though it was asked for.
        self.lacking = 0

    @property
    def numbers(self) -> dict[str, int]:
        return {
            "exported": self.jobs if self.in_place else 0,
            "unreadable": self.unreadable,
            "without_payload": self.lacking,
        }

    def skip(self, item: UnreadableItem) -> None:
        self.unreadable += 1
        report_unreadable_item(item)

    def write(self, file: IO[bytes], line: dict[str, Any]) -> None:
        file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.jobs += 1
        # No payload is null.
        self.lacking += "payload" in line and line["payload"] is None

    def raise_for_any_missing(self, target: str) -> None:
        """Raises `CommandError` if a job or a payload is not in the target."""
        parts, remedies = [], []
        if self.unreadable:
            parts.append(f"{count(self.unreadable, 'job')} that could not be read")
            remedies.append("The lines above name each such job and the reason.")
        if self.lacking:
            parts.append(f"the payloads of {count(self.lacking, 'job')}")
            # S3 does not say which.
            remedies.append("A payload was deleted before its job, or you lack s3:GetObject on the files bucket.")
        if parts:
            raise CommandError(f"{target} lacks {' and '.join(parts)}", remedy=" ".join(remedies))


def lines(
    installation: Installation, jobs: Iterable[Job], *, payloads: bool, rate: int | None
) -> Iterator[dict[str, Any]]:
    stream = iter(jobs)
    pace = installation.pace(rate) if rate else None
    with ThreadPoolExecutor(_THREADS) as pool:
        while batch := list(islice(stream, min(_BATCH, rate or _BATCH))):
            if pace:
                pace.spend(len(batch), within=timedelta.max)
            yield from pool.map(partial(_with_contents, installation), batch) if payloads else map(record, batch)


def _with_contents(installation: Installation, job: Job) -> dict[str, Any]:
    return operator_view(job, payload=payload_of(job, installation.payloads))
