"""`tidemill batch`: show a batch, or close one of the caller, or cancel it with its jobs."""

from typing import Any

import click

from tidemill.application.job_view import batch_view
from tidemill.cli.batches.composite import of_tenant, own
from tidemill.cli.formatting import visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show, show_json
from tidemill.cli.parameter_types import JOB_ID
from tidemill.domain.batches.batches import MISSING, is_batch
from tidemill.domain.states import FINAL_STATES, State


@click.command()
@click.argument("batch_id", type=JOB_ID, metavar="ID")
@click.option("--close", "closes", is_flag=True, help="Let no more jobs join.")
@click.option("--cancel", "cancels", is_flag=True, help="Let no more jobs join, and cancel those that have not ended.")
@click.option("--tenant", help="Operators: read the batch of this tenant from the table.")
@json_option("Print the batch as JSON.")
@click.pass_obj
def batch(
    installation: Installation, batch_id: str, tenant: str | None, *, closes: bool, cancels: bool, as_json: bool
) -> None:
    """Show how many jobs of your own batch are in which state.

    `tidemill redrive --own ID` redrives the dead jobs of a dead batch. `tidemill cancel ID` cancels the batch alone,
    and its jobs run on; --cancel cancels these too.

    With --tenant, operators see a batch of any tenant.
    """
    if closes and cancels:
        raise click.UsageError("give --close or --cancel, not both")
    if tenant and (closes or cancels):
        raise click.UsageError("--close and --cancel are for your own batches")
    change = "close" if closes else "cancel" if cancels else None
    if tenant:
        job = of_tenant(installation, tenant, batch_id, is_one=is_batch, what="batch")
        found = batch_view(job, installation.batch_members.look(job))
    else:
        found = own(installation, "/batches", batch_id, change=change)
    if as_json:
        show_json(found, one_line=True)
    else:
        show(_line(found))


def _line(found: dict[str, Any]) -> str:
    counts: dict[str, int] = found["counts"]
    at_rest = sum(counts.get(state, 0) for state in (*FINAL_STATES, State.DEAD, MISSING))
    phase = "open" if found["closed_at"] is None else "closed"
    if State(found["state"]).terminal:
        phase = found["state"]
    elif found["cancel_requested_at"]:
        phase = "being cancelled"
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    line = f"{visible(found['id'])}  {phase}, {at_rest} of {found['jobs']} jobs at rest"
    return f"{line}: {each}" if each else line
