"""A flow as a flowchart for Mermaid."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tidemill.domain.flows.flows import OnFailure

_ARROWS: Final[Mapping[str, str]] = {"fail": "-->", "skip": "-. skip .->", "continue": "-. continue .->"}


def mermaid(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a flowchart of the `nodes` of a view.

    https://mermaid.js.org/syntax/flowchart.html
    """
    yield "flowchart TD"
    numbers = {node["name"]: number for number, node in enumerate(nodes)}
    for number, node in enumerate(nodes):
        yield f'    n{number}["{node["name"]}<br/>{node["state"]}"]:::{node["state"]}'
    for number, node in enumerate(nodes):
        for edge in node["after"]:
            arrow = _ARROWS.get(edge["on_failure"], _ARROWS[OnFailure.FAIL])
            yield f"    n{numbers[edge['node']]} {arrow} n{number}"
