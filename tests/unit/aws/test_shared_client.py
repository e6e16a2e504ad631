"""The clients of AWS that several threads ask for at once."""

import runpy
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import boto3
import pytest

from tidemill.aws import clients

THREADS = 10


@pytest.mark.parametrize("service", ["s3", "sqs"])
def test_threads_share_one_client(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job of a batch asks in its thread. Ten clients would take the CPU time and memory of a second cold start."""
    # A module of its own, in which no client has been created.
    shared = runpy.run_path(clients.__file__)[service]
    created: list[str] = []
    together = Barrier(THREADS)

    def create(service: str, **_settings: Any) -> object:
        created.append(service)
        time.sleep(0.05)
        return object()

    def ask(_thread: int) -> object:
        together.wait()
        return shared()

    monkeypatch.setattr(boto3, "client", create)
    with ThreadPoolExecutor(THREADS) as pool:
        found = set(pool.map(ask, range(THREADS)))

    assert created == [service]
    assert len(found) == 1
