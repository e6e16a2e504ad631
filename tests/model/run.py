"""Run the state machine."""

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.shipped_system import sequentially
from tests.model.state_machine import Protocol


@dataclass
class Totals:
    """Number of examples and steps."""

    examples: int = 0
    steps: int = 0


def run_examples(examples: int, *, steps: int = 30, by_chance: bool = False) -> Totals:
    """Raises the first difference, with its story. The examples are always the same, unless `by_chance`."""
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
                # No explain phase: it doubles the time.
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    return totals
