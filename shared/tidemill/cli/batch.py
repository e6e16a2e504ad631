"""`tidemill batch`: show a batch of the caller, close it, or cancel it with its jobs, over the HTTP API."""

from typing import Any
from urllib.parse import quote

import click

from tidemill.cli.api_call import call
from tidemill.cli.formatting import visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import show, show_json
from tidemill.domain.batches import FINAL_STATES
from tidemill.domain.states import State


@click.command()
@click.argument("batch_id", metavar="ID")
@click.option("--close", "closes", is_flag=True, help="Let no more jobs join.")
@click.option("--cancel", "cancels", is_flag=True, help="Let no more jobs join, and cancel those that have not ended.")
@click.option("--json", "as_json", is_flag=True, help="Print the batch as JSON.")
@click.pass_obj
def batch(installation: Installation, batch_id: str, *, closes: bool, cancels: bool, as_json: bool) -> None:
    """Show how many jobs of your own batch are in which state.

    `tidemill redrive --own ID` redrives the dead jobs of a dead batch. `tidemill cancel ID` cancels the batch alone,
    and its jobs run on; --cancel cancels these too.
    """
    if closes and cancels:
        raise click.UsageError("give --close or --cancel, not both")
    path = f"/batches/{quote(batch_id, safe='')}"
    if closes or cancels:
        call(installation.api, "POST", f"{path}/{'close' if closes else 'cancel'}")
    found, _ = call(installation.api, "GET", path)
    if as_json:
        show_json(found, one_line=True)
    else:
        show(_line(found))


def _line(found: dict[str, Any]) -> str:
    counts: dict[str, int] = found["counts"]
    at_rest = sum(counts.get(state, 0) for state in (*FINAL_STATES, State.DEAD))
    phase = "open" if found["closed_at"] is None else "closed"
    if State(found["state"]).terminal:
        phase = found["state"]
    elif found["cancel_requested_at"]:
        phase = "being cancelled"
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    line = f"{visible(found['id'])}  {phase}, {at_rest} of {found['jobs']} jobs at rest"
    return f"{line}: {each}" if each else line
