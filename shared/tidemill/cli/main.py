"""The `tidemill` console script: global options and the list of commands."""

import sys
from typing import Final

import click

from tidemill.cli.audit import audit
from tidemill.cli.batch import batch
from tidemill.cli.breakers import breakers
from tidemill.cli.cancel import cancel
from tidemill.cli.check import check
from tidemill.cli.config import config
from tidemill.cli.cost import cost
from tidemill.cli.dlq_list import dlq_list
from tidemill.cli.dlq_show import dlq_show
from tidemill.cli.dlq_summary import dlq_summary
from tidemill.cli.dlq_sweep import dlq_sweep
from tidemill.cli.errors import ErrorReportingGroup
from tidemill.cli.explain import explain
from tidemill.cli.export import export
from tidemill.cli.flow import flow
from tidemill.cli.get import get
from tidemill.cli.installation import Installation
from tidemill.cli.list import list_
from tidemill.cli.logs import logs
from tidemill.cli.migrate import migrate
from tidemill.cli.pause import pause, resume
from tidemill.cli.publish import publish
from tidemill.cli.purge import purge
from tidemill.cli.reconcile import reconcile
from tidemill.cli.recover import recover
from tidemill.cli.redrive import redrive
from tidemill.cli.repair import repair
from tidemill.cli.replay import replay
from tidemill.cli.rollback import rollback
from tidemill.cli.schedules import schedules
from tidemill.cli.signal import signal
from tidemill.cli.smoke import smoke
from tidemill.cli.status import status
from tidemill.cli.submit import submit
from tidemill.cli.top import top
from tidemill.cli.undo import undo
from tidemill.cli.versions_list import versions_list
from tidemill.cli.versions_prune import versions_prune
from tidemill.cli.watch import watch
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
