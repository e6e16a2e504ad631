"""`tidemill flow`: show the graph of a flow, or cancel one of the caller with its nodes."""

from typing import Any

import click

from tidemill.application.flows.flow_view import graph_view
from tidemill.cli.batches.composite import of_tenant, own
from tidemill.cli.flows.mermaid import mermaid
from tidemill.cli.formatting import DASH, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show, show_json, show_table
from tidemill.cli.parameter_types import JOB_ID
from tidemill.domain.flows.flows import is_flow


@click.command()
@click.argument("flow_id", type=JOB_ID, metavar="ID")
@click.option("--cancel", "cancels", is_flag=True, help="Start no more nodes, and cancel those that have not ended.")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graph as a flowchart for Mermaid.")
@click.option("--tenant", help="Operators: read the flow of this tenant from the table.")
@json_option("Print the flow as JSON.")
@click.pass_obj
def flow(
    installation: Installation, flow_id: str, tenant: str | None, *, cancels: bool, as_mermaid: bool, as_json: bool
) -> None:
    """Show the nodes of your own flow.

    With what has become of each, and the parents for which it waits. `tidemill redrive --own ID` redrives the failed
    nodes of a dead flow, and lets it go on from there.

    With --tenant, operators see a flow of any tenant.
    """
    if as_mermaid and as_json:
        raise click.UsageError("give --mermaid or --json, not both")
    if cancels and tenant:
        raise click.UsageError(
            "--cancel is for your own flows; `tidemill cancel ID --tenant TENANT` lets no more nodes start"
        )
    if tenant:
        job = of_tenant(installation, tenant, flow_id, is_one=is_flow, what="flow")
        found = graph_view(installation.flow_look.documents(job))
    else:
        found = own(installation, "/flows", flow_id, change="cancel" if cancels else None)
    if as_json:
        show_json(found, one_line=True)
    elif as_mermaid:
        for line in mermaid(found["nodes"]):
            show(line)
    else:
        show(_line(found))
        show_table(["NODE", "TYPE", "STATE", "AFTER", "JOB"], [_row(node) for node in found["nodes"]])


def _line(found: dict[str, Any]) -> str:
    each = ", ".join(f"{count} {state}" for state, count in found["counts"].items())
    cancelled = ", being cancelled" if found["cancel_requested_at"] and not found["finished_at"] else ""
    return f"{visible(found['id'])}  {found['state']}{cancelled}: {each}"


def _row(node: dict[str, Any]) -> list[str]:
    state = node["state"]
    if node["waits_for"]:
        state += f", waits for {', '.join(node['waits_for'])}"
    after = [
        edge["node"] if edge["on_failure"] == "fail" else f"{edge['node']} ({edge['on_failure']})"
        for edge in node["after"]
    ]
    return [node["name"], node["type"], state, ", ".join(after) or DASH, node["job_id"] or DASH]
