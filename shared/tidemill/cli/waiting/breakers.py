"""`tidemill breakers`: the circuit breakers, and what holds each of them open."""

import click

from tidemill.cli.blocks import show_blocks
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show_json_lines, show_prose
from tidemill.cli.waiting.held_lines_report import breaker_as_json, breaker_table


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option("Print each breaker as a line of JSON.")
@click.pass_obj
def breakers(installation: Installation, names: tuple[str, ...], *, as_json: bool) -> None:
    """List the circuit breakers that hold jobs back.

    They have a line of jobs, or are forced. An open breaker is always among them, and one that has closed is for 20
    minutes or more. With NAME, show these breakers, also while they are closed; one that has never opened, or a name
    that no worker has used, is closed with a dash as its time.

    FAILURES are the failed calls of the last window, of all calls counted in it; for an open breaker, of the window in
    which it opened. Each breaker costs half a read unit, and the jobs of its line up to 15.

    `tidemill config set breakers.NAME '{"force": "open"}'` forces a breaker open, or "closed".
    """
    found = installation.breakers(names)
    if as_json:
        show_json_lines(map(breaker_as_json, found))
    elif found:
        show_blocks([breaker_table(found)])
    else:
        show_prose("No job waits for a breaker, and none is forced.")
