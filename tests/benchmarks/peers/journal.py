"""Reads the journal: what the workers of one system noted, and when."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Notes:
    """By kind of note, then by number of the job: the times, in seconds since 1970."""

    by_kind: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def of(self, kind: str) -> Mapping[int, Sequence[float]]:
        return self.by_kind.get(kind, {})

    def count(self, kind: str) -> int:
        return sum(len(times) for times in self.of(kind).values())


class Journal:
    """Each call of `read` reads what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._notes = Notes()
        self._offset = 0
        #: The process that began the last job.
        self.last_begun_by = 0

    def read(self) -> Notes:
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offset += len(whole)
            for line in whole.decode().splitlines():
                kind, number, at, pid = line.split()
                if kind == "begin":
                    self.last_begun_by = int(pid)
                self._notes.by_kind[kind][int(number)].append(float(at))
        return self._notes
