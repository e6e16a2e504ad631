"""Another caller acts between two requests of a call."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.faulty_client import FaultyClient


def meet(client: FaultyClient, act: Callable[[], object]) -> None:
    """Call `act` once, right before the next write of `client`. `act` must use another client."""

    def once(_applied: bool) -> None:
        client.watch = lambda _applied: None
        act()

    client.watch = once


def meet_before_read(
    client: FaultyClient, prefix: str, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call `act` once, right before the next read of an item whose key begins with `prefix`."""
    read = client.get_item
    acts = [act]

    def get_item(**request: Any) -> Any:
        if acts and request["Key"]["pk"]["S"].startswith(prefix):
            acts.pop()()
        return read(**request)

    monkeypatch.setattr(client, "get_item", get_item, raising=False)
