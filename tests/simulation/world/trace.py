"""The trace of one world, in order: the checks read it, its hash proves a replay, and a failed seed prints a part."""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.world.task_scheduler import BEGINNING_MS

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One write that was applied to an item of the jobs table."""

    at_ms: int
    #: Name of the process that made the call.
    by: str
    before: Item | None
    after: Item | None

    @property
    def key(self) -> str:
        name: str = (self.after or self.before or {})["pk"]["S"]
        return name

    @property
    def begins(self) -> bool:
        """Whether this write inserts a job: the first or a later one of the key."""
        job, earlier = self.after or {}, self.before or {}
        return "state" in job and job["created_at"] != earlier.get("created_at")


@dataclass(slots=True)
class Trace:
    """`lines` are (milliseconds, process or service, text)."""

    lines: list[tuple[int, str, str]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def log(self, at_ms: int, who: str, what: str) -> None:
        self.lines.append((at_ms, who, what))

    def changed_since(self, key: str, since_ms: int) -> bool:
        """Whether the item with this key was written at that time or later."""
        recent = itertools.takewhile(lambda change: change.at_ms >= since_ms, reversed(self.changes))
        return any(change.key == key for change in recent)

    def last_death_ms(self, function: str, until_ms: int) -> int:
        """When a call of this function last was killed or raised an error, until then. 0 for none."""
        deaths = (ms for ms, by, what in self.lines if by.startswith(f"{function} ") and what.startswith("*"))
        return max((ms for ms in deaths if ms <= until_ms), default=0)

    def hash(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for line in self.lines:
            digest.update(repr(line).encode())
        return digest.hexdigest()

    def story(self, about: str, *, most_lines: int = 60) -> str:
        """The lines that name the job `about`, and the faults of the processes in them. With `*`, all faults."""
        name = about.rpartition("#")[2]
        who = {line[1] for line in self.lines if name in line[2]} | {"weather"}
        relevant = [line for line in self.lines if name in line[2] or (line[2].startswith("*") and line[1] in who)]
        cut = relevant[-most_lines:]
        head = [f"  ({len(relevant) - len(cut)} earlier lines left out)"] if len(cut) < len(relevant) else []
        return "\n".join([*head, *(f"  {moment(at_ms)}  {who:<16} {what}" for at_ms, who, what in cut)])


def moment(at_ms: int) -> str:
    """Time since the beginning, as hours, minutes and seconds."""
    seconds, milliseconds = divmod(at_ms - BEGINNING_MS, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
