"""Plays the state machine."""

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.shipped_system import sequentially
from tests.model.state_machine import Protocol


@dataclass
class Totals:
    """How much was totals."""

    examples: int = 0
    steps: int = 0


def run_examples(examples: int, *, steps: int = 30, by_chance: bool = False) -> Totals:
    """Raises whatever is found, with its story. The same each time, unless `by_chance`."""
    totals = Totals()

    class Counted(Protocol):
        def teardown(self) -> None:
            totals.examples += 1
            totals.steps += len(self.comparison.story)
            super().teardown()

    with sequentially():
        run_state_machine_as_test(
            Counted,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                derandomize=not by_chance,
                database=None,
                deadline=None,
                report_multiple_bugs=False,
                # Without the explanation, which takes as long again.
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    return totals
