"""The checks of the demo: expected and found figures. The demo succeeds only if every pair is equal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rich.table import Table

MOST_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One figure: the value in the deployed app, and the value that it must have."""

    name: str
    found: object
    expected: object

    @property
    def holds(self) -> bool:
        return self.found == self.expected


@dataclass(slots=True)
class Checks:
    """The checks of one run."""

    made: list[Check] = field(default_factory=list)

    def equal(self, name: str, found: object, expected: object) -> None:
        self.made.append(Check(name, found, expected))

    def true(self, name: str, holds: bool) -> None:  # noqa: FBT001 - the claim itself
        self.made.append(Check(name, holds, expected=True))

    @property
    def all_hold(self) -> bool:
        return bool(self.made) and all(check.holds for check in self.made)

    def table(self) -> Table:
        table = Table("", "figure", "found", "expected", title="Checks")
        for check in self.made:
            table.add_row("✓" if check.holds else "✗", check.name, _shown(check.found), _shown(check.expected))
        return table


def _shown(figure: object) -> str:
    """The text of a cell. More than `MOST_SHOWN` counts are shown as their sum and their number."""
    if not isinstance(figure, Mapping):
        return str(figure)
    if len(figure) > MOST_SHOWN:
        return f"{sum(figure.values())} in {len(figure)} categories"
    return "; ".join(f"{name}: {count}" for name, count in sorted(figure.items()))
