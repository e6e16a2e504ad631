"""The `tidemill` console script: global options, and the commands."""

import sys
from typing import Final

import click

from tidemill.cli.cancel import cancel
from tidemill.cli.dlq_list import dlq_list
from tidemill.cli.dlq_show import dlq_show
from tidemill.cli.errors import ExplainingGroup
from tidemill.cli.get import get
from tidemill.cli.installation import Installation
from tidemill.cli.list import list_
from tidemill.cli.purge import purge
from tidemill.cli.reconcile import reconcile
from tidemill.cli.redrive import redrive
from tidemill.cli.retry import retry
from tidemill.cli.status import status
from tidemill.cli.submit import submit
from tidemill.cli.watch import watch_

_EPILOG: Final = """\b
Exit codes:
  0    done
  1    failed; the reasons are on stderr, the innermost last
  2    wrong usage
  3    a job that was watched died
  4    a job that was watched was cancelled, and none died
  130  interrupted; what was done before stays done, and a repeat is safe
  141  whoever read the output stopped reading

Results go to stdout and everything else to stderr. Where stdout is no terminal, tables are plain and nothing in them is
cut. NO_COLOR is respected.

Credentials, region and endpoint are found as by every AWS tool; AWS_ENDPOINT_URL leads to an embedded AWS. An API that
wants a token instead of a signature gets that of TIDEMILL_TOKEN.
"""


@click.group(cls=ExplainingGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stack", envvar="TIDEMILL_STACK", show_envvar=True, help="The stack, where there are several.")
@click.option("--region", envvar=["AWS_REGION", "AWS_DEFAULT_REGION"], show_envvar=True, help="The AWS region.")
@click.option("--profile", help="The AWS profile; else AWS_PROFILE.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="tidemill", prog_name="tidemill", message="%(prog)s %(version)s")
@click.pass_context
def tidemill(ctx: click.Context, *, stack: str | None, region: str | None, profile: str | None, debug: bool) -> None:  # noqa: ARG001
    """Submit jobs to a deployed Tidemill, see them, and give the dead and the lost another chance."""
    ctx.obj = Installation(stack=stack, region=region, profile=profile)


@click.group()
def dlq() -> None:
    """Look at the dead jobs of all tenants."""


for command in (dlq_list, dlq_show):
    dlq.add_command(command)
for command in (submit, get, watch_, list_, cancel, retry, dlq, redrive, reconcile, purge, status):
    tidemill.add_command(command)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are text files here
    tidemill()
