"""The result of a sample: a table by module, and the bounds."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.simulation.mutants.generated.results import Result

#: Shares of the mutants that count as changing behaviour.
MOST_SURVIVING: Final = 0.02
LEAST_CAUGHT_BY_SIMULATOR: Final = 0.75
#: Share of the sample.
MOST_EQUIVALENT: Final = 0.10


class Summary:
    """Every mutant counts as changing behaviour unless a file of `equivalent` gives a reason."""

    def __init__(self, results: Sequence[Result], *, equivalent: int) -> None:
        self._results = results
        self._equivalent = equivalent
        self._simulator = sum(result.simulator is not None for result in results)
        self._tests = sum(result.tests is not None for result in results)
        self._survived = sum(result.survived for result in results)

    @property
    def within_bounds(self) -> bool:
        judged = len(self._results)
        return (
            self._survived <= MOST_SURVIVING * judged
            and self._simulator >= LEAST_CAUGHT_BY_SIMULATOR * judged
            and self._equivalent <= MOST_EQUIVALENT * (judged + self._equivalent)
        )

    def text(self) -> str:
        """Markdown."""
        rows = [
            "| module | mutants | caught by a story | by a seed | by tests only | survived |",
            "|---|---|---|---|---|---|",
        ]
        counts = Counter(result.id.partition(":")[0] for result in self._results)
        for module in sorted(counts):
            own = Summary([result for result in self._results if result.id.startswith(f"{module}:")], equivalent=0)
            rows.append(f"| {module} {own._cells()}")
        rows.append(f"| all {self._cells()}")
        judged = len(self._results)
        shares = (
            f"{self._share(self._simulator)} caught by the simulator (at least {LEAST_CAUGHT_BY_SIMULATOR:.0%})",
            f"{self._share(self._survived)} survived (at most {MOST_SURVIVING:.0%})",
            f"{self._equivalent} of {judged + self._equivalent} equivalent (at most {MOST_EQUIVALENT:.0%})",
        )
        return "\n".join([*rows, "", ", ".join(shares)])

    def _cells(self) -> str:
        stories = sum(result.by_story for result in self._results)
        return f"| {len(self._results)} | {stories} | {self._simulator - stories} | {self._tests} | {self._survived} |"

    def _share(self, count: int) -> str:
        return f"{count / max(len(self._results), 1):.1%}"
