"""`tidemill top`: the status, live."""

import time

import click
from rich.live import Live

from tidemill.cli.blocks import Block, Line, rendered
from tidemill.cli.formatting import readable_time
from tidemill.cli.installation import Installation
from tidemill.cli.operations.status_report import report
from tidemill.cli.output import console
from tidemill.system import clock


@click.command()
@click.option(
    "--interval",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Time between two readings. Each takes up to 350 read units from the table.",
)
@click.pass_obj
def top(installation: Installation, *, interval: int) -> None:
    """Show `tidemill status` live, until Ctrl-C."""
    screen = console()
    if not screen.is_terminal:
        raise click.UsageError("stdout is not a terminal; use `tidemill status`, or `tidemill status --json`")
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            live.update(rendered(_blocks(installation, interval)), refresh=True)
            time.sleep(interval)


def _blocks(installation: Installation, interval: int) -> list[Block]:
    found, deployment = installation.status(), installation.deployment
    heading = f"{deployment.stack} in {deployment.region}, {readable_time(clock.now())}, every {interval} s"
    return [Line(heading, "bold"), *report(found, deployment)]
