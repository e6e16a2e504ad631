"""The small flows whose histories are explored, and the large exploration."""

from typing import Final, NamedTuple

from tests.model.flow_types import Edge, Graph, Rule
from tests.model.flow_world import Faults

_A: Final = Edge(0)
_B: Final = Edge(1)


class Case(NamedTuple):
    graph: Graph
    faults: Faults
    #: So many of the last nodes are added while the flow runs.
    added: int = 0


PAIR: Final[Graph] = ((), (_A,))
CHAIN: Final[Graph] = ((), (_A,), (_B,))
FAN_OUT: Final[Graph] = ((), (_A,), (_A,))
FAN_IN: Final[Graph] = ((), (), (_A, _B))
FAN_IN_OF_THREE: Final[Graph] = ((), (), (), (_A, _B, Edge(2)))
#: A pair, and a node that stands alone. With one addition, the pair grows out of one of two nodes.
ONE_AND_PAIR: Final[Graph] = ((), (), (_A,))
#: A chain whose end follows both other nodes.
TRIANGLE: Final[Graph] = ((), (_A,), (_A, _B))
#: The second node is skipped if the first one fails, and the third one starts all the same.
SKIP: Final[Graph] = ((), (Edge(0, Rule.SKIP),), (Edge(1, Rule.CONTINUE),))
#: The second node starts, also if the first one fails.
CONTINUE: Final[Graph] = ((), (Edge(0, Rule.CONTINUE),), ())
MIXED: Final[Graph] = ((), (), (Edge(0, Rule.SKIP), Edge(1, Rule.CONTINUE)))

#: The graphs of every test run: some seconds in all.
SMALL: Final = {
    "a redrive": Case(PAIR, Faults(deaths=1, redrives=1, kills=1)),
    "a redrive of the flow": Case(PAIR, Faults(deaths=1, redrives=1, flow_redrives=1)),
    "a cancel of the flow": Case(PAIR, Faults(deaths=1, redrives=1, flow_cancels=1)),
    "a cancel of a node": Case(PAIR, Faults(cancels=1, doubles=1)),
    "an added child": Case(PAIR, Faults(zombies=1), added=1),
    "an added child of two": Case(TRIANGLE, Faults(), added=1),
    "an added child and a cancel": Case(PAIR, Faults(flow_cancels=1), added=1),
    "a chain": Case(CHAIN, Faults(deaths=1, redrives=1)),
    "a fan-out": Case(FAN_OUT, Faults(deaths=1)),
    "a fan-in": Case(FAN_IN, Faults(kills=1)),
    "a fan-in that fails": Case(FAN_IN, Faults(deaths=2)),
    "a fan-in of three": Case(FAN_IN_OF_THREE, Faults()),
    "a skip": Case(SKIP, Faults(deaths=1, redrives=1)),
    "two rules": Case(MIXED, Faults(deaths=2)),
}
#: The graphs of the command: some minutes.
LARGE: Final = {
    "a redrive": Case(PAIR, Faults(deaths=2, redrives=2, kills=1, doubles=1)),
    "a chain with a redrive of the flow": Case(CHAIN, Faults(deaths=2, flow_redrives=1, kills=1)),
    "a chain with a cancel": Case(CHAIN, Faults(deaths=1, redrives=1, flow_cancels=1)),
    "a fan-in that fails": Case(FAN_IN, Faults(deaths=1, redrives=1)),
    "a fan-in of three": Case(FAN_IN_OF_THREE, Faults(kills=1)),
    "a skip": Case(SKIP, Faults(deaths=1, redrives=1, kills=1)),
    "a node that goes on": Case(CONTINUE, Faults(deaths=1, redrives=1)),
    "an added child": Case(ONE_AND_PAIR, Faults(), added=1),
    "an added child of two": Case(TRIANGLE, Faults(kills=1), added=1),
}
