"""Owed work in memory. The contract suite of owed work runs on this and on DynamoDB."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from zlib import crc32

from tests.support.builders import NOW, fresh_token
from tidemill.application.dispatch.owed import Owed, Work
from tidemill.application.dispatch.owing_payloads import OwingPayloads
from tidemill.application.ports import WHOLE, Part, Payloads
from tidemill.domain.records import replace


def owing(payloads: Payloads) -> OwingPayloads:
    """For a writer of jobs whose test does not look at what it owes."""
    return OwingPayloads(payloads, owed=InMemoryOwedWork, clock=lambda: NOW)


@dataclass
class InMemoryOwedWork:
    """`OwedWork`. With `error`, no work can be stored."""

    stored: dict[Work, Owed] = field(default_factory=dict)
    error: Exception | None = None

    def owe(self, work: Work, *, now: datetime, error: str) -> None:
        if self.error:
            raise self.error
        fresh = Owed(
            work=work, since=now, next_try=now, tries=0, error=error, resent=False, version=fresh_token(), failures=0
        )
        there = self.stored.get(work, fresh)
        self.stored[work] = replace(
            there, error=error, resent=False, version=fresh.version, failures=there.failures + 1
        )

    def pending(self, *, before: datetime, part: Part = WHOLE) -> Iterator[Owed]:
        yield from [
            owed
            for owed in self.stored.values()
            if owed.next_try <= before and crc32(owed.work.name.encode()) % part.count == part.number
        ]

    def put_off(self, owed: Owed, *, until: datetime, error: str | None) -> None:
        if self._unchanged(owed):
            self.stored[owed.work] = replace(
                owed,
                next_try=until,
                tries=owed.tries + 1,
                error=error or owed.error,
                resent=owed.resent or error is None,
                version=fresh_token(),
            )

    def done(self, owed: Owed) -> None:
        if self._unchanged(owed):
            del self.stored[owed.work]

    def _unchanged(self, owed: Owed) -> bool:
        there = self.stored.get(owed.work)
        return there is not None and there.version == owed.version
