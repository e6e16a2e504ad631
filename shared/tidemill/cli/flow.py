"""`tidemill flow`: show the graph of a flow, or cancel one of the caller with its nodes."""

from typing import Any
from urllib.parse import quote

import click

from tidemill.application.flow_view import graph_view, mermaid
from tidemill.cli.any_tenant import read
from tidemill.cli.api_call import call
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import DASH, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import show, show_json, show_table
from tidemill.domain.flows import is_flow


@click.command()
@click.argument("flow_id", metavar="ID")
@click.option("--cancel", "cancels", is_flag=True, help="Start no more nodes, and cancel those that have not ended.")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graph as a flowchart for Mermaid.")
@click.option("--tenant", help="Operators: read the flow of this tenant from the table.")
@click.option("--json", "as_json", is_flag=True, help="Print the flow as JSON.")
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
    found = _of_tenant(installation, tenant, flow_id) if tenant else _own(installation, flow_id, cancels=cancels)
    if as_json:
        show_json(found, one_line=True)
    elif as_mermaid:
        for line in mermaid(found["nodes"]):
            show(line)
    else:
        show(_line(found))
        show_table(["NODE", "TYPE", "STATE", "AFTER", "JOB"], [_row(node) for node in found["nodes"]])


def _own(installation: Installation, flow_id: str, *, cancels: bool) -> dict[str, Any]:
    path = f"/flows/{quote(flow_id, safe='')}"
    if cancels:
        call(installation.api, "POST", f"{path}/cancel")
    found, _ = call(installation.api, "GET", path)
    return dict(found)


def _of_tenant(installation: Installation, tenant: str, flow_id: str) -> dict[str, Any]:
    job = read(installation, tenant, flow_id)
    if not is_flow(job):
        raise CommandError(f"{flow_id} is a job of the type {job.type}, and no flow", remedy="Use `tidemill get`.")
    return graph_view(installation.flow_look.documents(job))


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
