"""`tidemill flow`: show the graph of a flow of the caller, or cancel it with its nodes, over the HTTP API."""

from typing import Any
from urllib.parse import quote

import click

from tidemill.application.flow_view import mermaid
from tidemill.cli.api_call import call
from tidemill.cli.formatting import DASH, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import show, show_json, show_table


@click.command()
@click.argument("flow_id", metavar="ID")
@click.option("--cancel", "cancels", is_flag=True, help="Start no more nodes, and cancel those that have not ended.")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graph as a flowchart for Mermaid.")
@click.option("--json", "as_json", is_flag=True, help="Print the flow as JSON.")
@click.pass_obj
def flow(installation: Installation, flow_id: str, *, cancels: bool, as_mermaid: bool, as_json: bool) -> None:
    """Show the nodes of your own flow.

    With what has become of each, and the parents for which it waits. `tidemill redrive --own ID` redrives the failed
    nodes of a dead flow, and lets it go on from there.
    """
    if as_mermaid and as_json:
        raise click.UsageError("give --mermaid or --json, not both")
    path = f"/flows/{quote(flow_id, safe='')}"
    if cancels:
        call(installation.api, "POST", f"{path}/cancel")
    found, _ = call(installation.api, "GET", path)
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
