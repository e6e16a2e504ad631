"""Another caller acts between the read and the write of a call."""

from collections.abc import Callable

from tests.support.faulty_client import FaultyClient


def meet(client: FaultyClient, act: Callable[[], object]) -> None:
    """Call `act` once, right before the next write of `client`. `act` must use another client."""

    def once(_applied: bool) -> None:
        client.watch = lambda _applied: None
        act()

    client.watch = once
