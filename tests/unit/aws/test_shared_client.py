"""The clients of AWS that several threads ask for at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import boto3
import pytest

from tidemill.aws import clients

THREADS = 10


def test_the_jobs_of_a_batch_whose_payloads_are_files_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them asks in its thread. Ten clients would take the CPU time and the memory of a second cold start."""
    created: list[str] = []
    together = Barrier(THREADS)

    def create(service: str, **_settings: Any) -> object:
        created.append(service)
        time.sleep(0.05)
        return object()

    def ask(_thread: int) -> object:
        together.wait()
        return clients.s3()

    monkeypatch.setattr(boto3, "client", create)
    clients._s3.cache_clear()
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            found = set(pool.map(ask, range(THREADS)))
    finally:
        clients._s3.cache_clear()

    assert created == ["s3"]
    assert len(found) == 1
