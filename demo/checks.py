"""What the demo claims and what it found: it succeeds only if every pair is equal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rich.table import Table

MOST_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One figure, as found in the deployed app and as it must be."""

    what: str
    found: object
    expected: object

    @property
    def holds(self) -> bool:
        return self.found == self.expected


@dataclass(slots=True)
class Checks:
    """All figures of a run."""

    made: list[Check] = field(default_factory=list)

    def equal(self, what: str, found: object, expected: object) -> None:
        self.made.append(Check(what, found, expected))

    def true(self, what: str, holds: bool) -> None:  # noqa: FBT001 - the claim itself
        self.made.append(Check(what, holds, expected=True))

    @property
    def hold(self) -> bool:
        return bool(self.made) and all(check.holds for check in self.made)

    def table(self) -> Table:
        table = Table("", "figure", "found", "expected", title="Reconciliation")
        for check in self.made:
            table.add_row("✓" if check.holds else "✗", check.what, _shown(check.found), _shown(check.expected))
        return table


def _shown(figure: object) -> str:
    """A figure in a cell: counts as they are, or by number and sum when there are many."""
    if not isinstance(figure, Mapping):
        return str(figure)
    if len(figure) > MOST_SHOWN:
        return f"{sum(figure.values())} in {len(figure)} kinds"
    return "; ".join(f"{name}: {count}" for name, count in sorted(figure.items()))
