"""Plays with a price for reads, and for the JSON that is parsed and kept. Each says what is too dear."""

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from tests.simulation.progress.scene import Scene, pause, scene
from tidemill.application.flows import flow_graphs, flow_view
from tidemill.application.flows.bounded_cache import BoundedCache
from tidemill.domain.flows import flows
from tidemill.domain.states import State
from tidemill.names import WAKE_PART, WAKE_PARTS

#: What is too dear.
Dear = list[str]


@contextmanager
def _reads(play: Scene) -> Iterator[Callable[[], int]]:
    """The items of the table that were read since the last call."""
    read, counted = play.world.dynamodb._read, 0

    def counting(*given: Any, **more: Any) -> Any:
        nonlocal counted
        counted += 1
        return read(*given, **more)

    def since() -> int:
        nonlocal counted
        found, counted = counted, 0
        return found

    with patch.object(play.world.dynamodb, "_read", counting):
        yield since


def _nodes(count: int, **payload: Any) -> list[dict[str, Any]]:
    """All others wait for the first one, and the last one for all."""
    first: dict[str, Any] = {"name": "n0", "type": "sim.node", "payload": {"key": "n0", **payload}}
    others = ({"name": f"n{at}", "type": "sim.node", "payload": {"key": f"n{at}", **payload}} for at in range(1, count))
    nodes: list[dict[str, Any]] = [first, *(each | {"after": ["n0"]} for each in others)]
    nodes[-1]["after"] = [each["name"] for each in nodes[:-1]]
    return nodes


def pages_of_a_flow() -> Dear:
    """It has ten times as many nodes as a page."""
    with scene((flow_view, "MOST_ON_PAGE", 5)) as play, _reads(play) as reads:
        flow = play.post("/flows", {"nodes": _nodes(50)})["id"]
        dear = []
        for cursor in (0, 25, 45, 50, 99_999):
            reads()
            page = play.get(f"/flows/{flow}", cursor=str(cursor))
            assert len(page["nodes"]) == min(5, max(50 - cursor, 0))
            if (read := reads()) > 2 * 5 + 1:
                dear.append(f"the page at {cursor} reads {read} items")
        return dear


def looks_of_a_flow_that_waits() -> Dear:
    """Its first node is paused. The pauses between looks are those of a flow with a hundred times its nodes."""
    with scene((flows, "_PAUSE_OF_NODE", timedelta(minutes=10))) as play, _reads(play) as reads:
        play.does(partial(pause, "type=sim.node"))
        play.passes(60)
        flow = play.post("/flows", {"nodes": _nodes(100)})["id"]
        for _ in range(10 * 24):
            play.passes(3_600)
            play.calls("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})
        assert not play.job(flow).state.terminal
        read = reads()
    # 22 looks as the flow becomes older, and then one in each 17 hours. Every hour, they would be 240.
    return [f"ten days of waiting read {read} items"] if read > 40 * 110 else []


def parsed_payloads_of_flows() -> Dear:
    """Each flow has large payloads. A function holds the texts of two of them."""
    padding: list[Any] = [[]] * 3_000
    #: Only texts that have nodes count: the SDK parses its own models, too.
    largest = 0
    with scene((flow_graphs, "_TEXT_BYTES", 400_000)) as play:
        for number in range(4):
            flow = play.post("/flows", {"nodes": _nodes(20, lists=padding)}, key=str(number))["id"]
        loads = json.loads

        def counting(text: Any, *given: Any, **more: Any) -> Any:
            nonlocal largest
            largest = max(largest, len(text) if "sim.node" in str(text) else 0)
            return loads(text, *given, **more)

        with patch("json.loads", counting):
            play.passes(600)
        assert play.job(flow).state is State.SUCCEEDED
        held = [each for each in gc.get_objects() if type(each) is BoundedCache]
    dear = [f"{largest} characters of nodes are parsed at once"] if largest > 20_000 else []
    return dear + ["the kept values exceed their bound" for each in held if each._left < 0]


PRICED: Final[Mapping[str, Callable[[], Dear]]] = {
    "pages of a flow": pages_of_a_flow,
    "looks of a flow that waits": looks_of_a_flow_that_waits,
    "parsed payloads of flows": parsed_payloads_of_flows,
}
