"""`tidemill migrate`: rewrite the payloads of a job type with a function of the app."""

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.operations.operator_job import pace_of, require_success, result_of, watched
from tidemill.cli.output import show, show_json
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission
from tidemill.migration.job import MigrationRequest
from tidemill.names import BUILT_IN_PREFIX, MIGRATION_TENANT, MIGRATION_TYPE

#: The members of the result that the audit entry has. All are numbers.
_COUNTS: Final = ("rewritten", "unchanged", "failed", "left")


def _function(_: click.Context, __: click.Parameter, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise click.BadParameter("use MODULE:FUNCTION, such as functions.migrations:add_locale")
    return name


@click.command()
@click.argument("type_", metavar="TYPE")
@click.option(
    "--with", "function", required=True, callback=_function, metavar="MODULE:FUNCTION", help="A function of the app."
)
@click.option("--ended", is_flag=True, help="Ended jobs instead of live ones.")
@pace_of("jobs")
@change_options(dry_run="Print counts and examples, and change nothing.", json="Print the result as one JSON object.")
@click.pass_obj
def migrate(
    installation: Installation,
    *,
    type_: str,
    function: str,
    ended: bool,
    rate: int,
    read_units: int,
    how: ChangeOptions,
) -> None:
    """Rewrite the payloads of a job type.

    A job of lane bulk calls the deployed function with the payload of each live job of all tenants, and stores the
    payload that it returns, if that fits the model of the type. The function must return a payload that it has changed
    already as it is. A job that runs is left to a later pass. A payload that cannot be migrated is listed, and stays.

    Safe to repeat and to run concurrently, also while two versions of the code run. Ctrl-C stops the display; the
    migration continues.

    `tidemill audit` shows who migrated what.
    """
    if type_.startswith(BUILT_IN_PREFIX):
        raise click.UsageError(f"the payloads of {visible(type_)} are not those of an app, and cannot be rewritten")
    how.require_confirmation(instead="see counts and examples")
    if not how.dry_run and not how.confirmed(f"Migrate the {'ended' if ended else 'live'} jobs of {type_}?"):
        return
    request = MigrationRequest(
        type=type_, function=function, ended=ended, dry_run=how.dry_run, rate=rate, read_units=read_units
    )
    result: dict[str, Any] = {}
    options = request.model_dump()
    with audited(installation, "migrate", options=options, counts=lambda: _counts(result), reason=how.reason):
        job = installation.migrations.submit(Submission(type=MIGRATION_TYPE, payload=options)).job
        ended_job = watched(installation, MIGRATION_TENANT, job.id, name="migration", summary=_saved)
        result |= result_of(ended_job)
        if how.as_json:
            show_json({"id": job.id, "state": ended_job.state, **result})
        else:
            _show(result, dry_run=how.dry_run)
        _require_success(ended_job, result, dry_run=how.dry_run)


def _saved(saved: Mapping[str, Any]) -> str:
    return f"pass {saved['number']}: {_summary(saved)}"


def _counts(result: Mapping[str, Any]) -> dict[str, int]:
    return {name: result.get(name, 0) for name in _COUNTS}


def _summary(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{number} {name}" for name, number in _counts(result).items())


def _show(result: Mapping[str, Any], *, dry_run: bool) -> None:
    show(f"{'Dry run: ' if dry_run else ''}{_summary(result)}.")
    for example in result.get("examples", ()) if dry_run else ():
        show(f"{visible(example['id'])}\n  before {visible(example['before'])}\n  after  {visible(example['after'])}")
    for failure in result.get("failures", ()):
        show(
            f"failed: job {visible(failure['id'])} of tenant {visible(failure['tenant'])}: {visible(failure['error'])}"
        )


def _require_success(job: Job, result: Mapping[str, Any], *, dry_run: bool) -> None:
    logs = f"`tidemill logs {job.id}` lists each."
    require_success(job, name="migration")
    if failed := result.get("failed", 0):
        raise CommandError(f"{count(failed, 'payload')} could not be migrated", remedy=logs)
    # A dry run makes one pass.
    if (left := result.get("left", 0)) and not dry_run:
        raise CommandError(f"{count(left, 'job')} ran in every pass", remedy="Run the command again later.")
