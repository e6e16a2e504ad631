"""A flow as a flowchart."""

from tidemill.cli.flows.mermaid import mermaid


def test_a_flowchart_has_each_node_and_each_edge_by_its_rule() -> None:
    ship = {"name": "ship", "state": "dead", "after": []}
    edges = [{"node": "ship", "on_failure": rule} for rule in ("fail", "skip", "continue", "a later rule")]

    lines = list(mermaid([ship, {"name": "tell", "state": "pending", "after": edges}]))

    assert lines == [
        "flowchart TD",
        '    n0["ship<br/>dead"]:::dead',
        '    n1["tell<br/>pending"]:::pending',
        "    n0 --> n1",
        "    n0 -. skip .-> n1",
        "    n0 -. continue .-> n1",
        "    n0 --> n1",
    ]
