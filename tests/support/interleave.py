"""Two who meet: somebody else acts between what a call reads and what it writes."""

from collections.abc import Callable

from tests.support.faulty_client import FaultyClient


def meet(client: FaultyClient, act: Callable[[], object]) -> None:
    """Have `act` happen once, before the next write of `client`. It must use another client."""

    def once(_applied: bool) -> None:
        client.watch = lambda _applied: None
        act()

    client.watch = once
