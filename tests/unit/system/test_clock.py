"""Time, chance and names."""

import secrets
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.system import clock


def test_the_present_is_no_finer_than_a_document_can_hold() -> None:
    present = clock.now()

    assert present.tzinfo is UTC
    assert present.microsecond % 1000 == 0
    assert timedelta(0) <= datetime.now(UTC) - present < timedelta(minutes=1)


def test_tokens_are_never_given_twice_and_fit_a_client_token() -> None:
    tokens = {clock.new_token() for _ in range(1000)}

    assert len(tokens) == 1000
    assert all(len(token) <= 36 for token in tokens)


def test_job_ids_are_version_7_and_sort_by_the_time_at_which_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [0, 1, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1]
    ids = []
    for milliseconds in instants:
        monkeypatch.setattr(time, "time_ns", lambda now=milliseconds: now * 1_000_000)
        ids.append(clock.new_job_id())

    assert ids == sorted(ids)
    for job_id, milliseconds in zip(ids, instants, strict=True):
        parsed = uuid.UUID(job_id)
        assert (parsed.version, parsed.variant, parsed.int >> 80) == (7, uuid.RFC_4122, milliseconds)


def test_job_ids_of_the_same_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert len({clock.new_job_id() for _ in range(1000)}) == 1000


@pytest.mark.parametrize(("bits", "drawn"), [(0, 0.0), (1 << 52, 0.5), ((1 << 53) - 1, 1 - 2**-53)])
def test_a_draw_lies_below_one(monkeypatch: pytest.MonkeyPatch, bits: int, drawn: float) -> None:
    monkeypatch.setattr(secrets, "randbits", lambda _bits: bits)

    assert clock.draw() == drawn
    assert clock.draw() < 1
