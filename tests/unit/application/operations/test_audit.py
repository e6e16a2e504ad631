"""The entries of one command in the audit log: when they are written, and what they say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.application.operations.audit import AuditEntry, Auditor, Outcome
from tidemill.domain.errors import StoreUnavailableError


class Log:
    """`AuditLog` that notes each call."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, entry: AuditEntry) -> None:
        if self.error:
            raise self.error
        self.calls.append(("begin", entry))

    def end(self, entry: AuditEntry, *, at: datetime, outcome: Outcome, counts: Mapping[str, int]) -> None:
        self.calls.append(("end", entry, at, outcome, counts))


def auditor_of(log: Log) -> Auditor:
    """Its clock is a second later with each look."""
    times = iter([NOW, NOW + SECOND])
    return Auditor(log, clock=lambda: next(times), new_token=lambda: "token")  # type: ignore[arg-type]  # it needs less


@pytest.mark.parametrize("outcome", Outcome)
def test_a_command_has_an_entry_from_its_beginning_which_its_end_completes(outcome: Outcome) -> None:
    log = Log()
    auditor = auditor_of(log)

    entry = auditor.begin("redrive", by="ada", reason="fixed", options={"limit": 2})

    assert log.calls == [("begin", entry)]
    assert entry == AuditEntry(
        id="token", command="redrive", began_at=NOW, by="ada", reason="fixed", options={"limit": 2}
    )
    assert (entry.ended_at, entry.outcome, entry.counts) == (None, None, {})
    auditor.end(entry, outcome, {"written": 1})
    assert log.calls[1:] == [("end", entry, NOW + SECOND, outcome, {"written": 1})]


def test_a_command_whose_entry_cannot_be_written_learns_it_at_once() -> None:
    with pytest.raises(StoreUnavailableError):
        auditor_of(Log(StoreUnavailableError("down"))).begin("cancel", by="ada", reason="", options={})


def test_the_outcomes_are_kept_by_these_names() -> None:
    assert [*map(str, Outcome)] == ["done", "failed", "interrupted"]
