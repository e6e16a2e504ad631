"""Tokens and job ids."""

import time
import uuid

import pytest

from tidemill.system import ids


def test_tokens_are_unique_and_fit_a_client_token() -> None:
    tokens = {ids.new_token() for _ in range(1000)}

    assert len(tokens) == 1000
    assert all(len(token) <= 36 for token in tokens)


def test_job_ids_are_version_7_and_sort_by_creation_time(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [0, 1, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1]
    made = []
    for milliseconds in instants:
        monkeypatch.setattr(time, "time_ns", lambda now=milliseconds: now * 1_000_000)
        made.append(ids.new_job_id())

    assert made == sorted(made)
    for job_id, milliseconds in zip(made, instants, strict=True):
        parsed = uuid.UUID(job_id)
        assert (parsed.version, parsed.variant, parsed.int >> 80) == (7, uuid.RFC_4122, milliseconds)


def test_job_ids_of_the_same_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert len({ids.new_job_id() for _ in range(1000)}) == 1000
