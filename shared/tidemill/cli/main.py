"""The `tidemill` console script: global options and the list of commands."""

import sys
from typing import Final

import click

from tidemill.cli.batches.batch import batch
from tidemill.cli.control.cancel import cancel
from tidemill.cli.control.dlq_list import dlq_list
from tidemill.cli.control.dlq_show import dlq_show
from tidemill.cli.control.dlq_summary import dlq_summary
from tidemill.cli.control.dlq_sweep import dlq_sweep
from tidemill.cli.control.purge import purge
from tidemill.cli.control.redrive import redrive
from tidemill.cli.corrections.undo import undo
from tidemill.cli.deployments.check import check
from tidemill.cli.deployments.rollback import rollback
from tidemill.cli.deployments.smoke import smoke
from tidemill.cli.deployments.versions_list import versions_list
from tidemill.cli.deployments.versions_prune import versions_prune
from tidemill.cli.errors import ErrorReportingGroup
from tidemill.cli.events.publish import publish
from tidemill.cli.events.replay import replay
from tidemill.cli.explain.explain import explain
from tidemill.cli.explain.get import get
from tidemill.cli.explain.list import list_
from tidemill.cli.explain.logs import logs
from tidemill.cli.explain.watch import watch
from tidemill.cli.flows.flow import flow
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audit
from tidemill.cli.operations.config import config
from tidemill.cli.operations.cost import cost
from tidemill.cli.operations.export import export
from tidemill.cli.operations.migrate import migrate
from tidemill.cli.operations.reconcile import reconcile
from tidemill.cli.operations.repair import repair
from tidemill.cli.operations.status import status
from tidemill.cli.operations.top import top
from tidemill.cli.restore.recover import recover
from tidemill.cli.submission.submit import submit
from tidemill.cli.waiting.breakers import breakers
from tidemill.cli.waiting.pause import pause, resume
from tidemill.cli.waiting.schedules import schedules
from tidemill.cli.waiting.signal import signal
from tidemill.system import interruptions, standard_streams

_EPILOG: Final = """\b
Exit codes:
  0    success
  1    failed or refused; stderr lists the causes, the root cause last
  2    wrong usage; nothing was sent or changed
  3    a watched job died
  4    a watched job was cancelled or expired, and none died
  130  interrupted by Ctrl-C, SIGTERM or SIGHUP; changes made before it remain
  141  the reader of the output closed the pipe

Results go to stdout, everything else to stderr. If stdout is not a terminal, tables are plain text and nothing is
truncated. NO_COLOR is respected.

Credentials, region and endpoint come from the usual AWS settings. Set AWS_ENDPOINT_URL to use an embedded AWS. Set
TIDEMILL_TOKEN if the API requires a bearer token instead of an AWS signature.
"""


@click.group(cls=ErrorReportingGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stack", envvar="TIDEMILL_STACK", show_envvar=True, help="Stack; needed if several exist.")
@click.option("--region", envvar=["AWS_REGION", "AWS_DEFAULT_REGION"], show_envvar=True, help="AWS region.")
@click.option("--profile", help="AWS profile; default: AWS_PROFILE.")
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
@click.version_option(package_name="tidemill", prog_name="tidemill", message="%(prog)s %(version)s")
@click.pass_context
def tidemill(ctx: click.Context, *, stack: str | None, region: str | None, profile: str | None, debug: bool) -> None:  # noqa: ARG001
    """Submit, watch and manage the jobs of a deployed Tidemill."""
    ctx.obj = Installation(stack=stack, region=region, profile=profile)


@click.group()
def dlq() -> None:
    """Inspect dead jobs and process DLQ messages."""


@click.group()
def versions() -> None:
    """List the versions of the functions, and delete old ones."""


for command in (versions_list, versions_prune):
    versions.add_command(command)
for command in (dlq_summary, dlq_list, dlq_show, dlq_sweep):
    dlq.add_command(command)
for command in (
    submit,
    publish,
    get,
    watch,
    list_,
    explain,
    logs,
    cancel,
    signal,
    batch,
    flow,
    undo,
    replay,
    dlq,
    redrive,
    reconcile,
    recover,
    repair,
    purge,
    status,
    top,
    breakers,
    pause,
    resume,
    rollback,
    versions,
    schedules,
    config,
    export,
    migrate,
    audit,
    check,
    smoke,
    cost,
):
    tidemill.add_command(command)


def main() -> None:
    standard_streams.open_missing()
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal's encoding lacks, instead of failing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are text files here
    interruptions.end_as_by_ctrl_c()
    tidemill(prog_name="tidemill")


if __name__ == "__main__":
    main()
