"""`tidemill status`: the state of the whole installation at one moment."""

import click

from tidemill.cli.blocks import show_blocks
from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.cli.operations.status_json import as_json_object
from tidemill.cli.operations.status_report import report
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show_json


@click.command()
@json_option("Print the status as one JSON object.")
@click.pass_obj
def status(installation: Installation, *, as_json: bool) -> None:
    """Show what is wrong, where jobs wait, and whose they are.

    First the alarms that fire, with what to do, and each event source mapping and each schedule that differs from the
    stack's template, with the command that brings it back. Then how fast the error budgets are spent: the burn rates as
    the deployed alarms compute them. Then for each lane the messages waiting, delayed and in flight, the age of the
    oldest message, and the messages in its dead-letter queue; and what came in and went out in the last five minutes,
    also by type if the stage measures types. Then the scheduled, parked and dead jobs, and the types and tenants of
    those that wait and those that died.

    SQS reports the numbers of messages, which are approximate. CloudWatch reports ages and flows with a delay of one to
    two minutes; a dash means that it has no recent value. Counts end at a bound, and then say "more than"; they include
    expired jobs that DynamoDB has not deleted yet. The types that the stage does not measure, and all
    tenants, come from samples, each with its size. The command takes the same time with ten jobs and with a million.

    The exit code is 0 even if something is stopped, and 1 if a part could not be read; the other parts are shown.
    """
    found = installation.status()
    deployment = installation.deployment
    if as_json:
        show_json(as_json_object(found, deployment))
    else:
        say(f"{deployment.stack} in {deployment.region}")
        show_blocks(report(found, deployment))
    if unread := found.unread:
        # Most often one cause lies behind all of them.
        first = next(iter(unread.values())).error
        raise CommandError(f"some parts of the status could not be read: {', '.join(unread)}") from first
