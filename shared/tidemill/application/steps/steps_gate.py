"""The gate of steps: the handler gets those that earlier runs recorded, and must ask for each of them again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemill.application.attempt.attempt_holds import left_to_another_version
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.application.steps.steps import Steps
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.history import version_of


class StepsGate(Gate):
    """It comes before the gates that look at the result of the call, so that an error of a step replaces theirs."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__(run)
        self._steps = Steps(
            run.job,
            run.context.store,
            run.context.clock,
            version=version_of(run.hooks.worker),
            under_way=run.attempt.require_under_way,
            writes=run.attempt.written,
        )

    def enter(self) -> None:
        self.run.take_step = self._steps.take

    @contextmanager
    def around_call(self) -> Iterator[None]:
        """Raises the error of a step that the handler has caught, or has replaced by another."""
        try:
            yield
        except Exception:
            self._steps.require_sound()
            raise

    def returned(self, value: Any) -> Outcome | None:
        """A success must have asked for each recorded step, unless only another version of the code knows the last."""
        if changed := self._steps.of_another_version(value):
            return left_to_another_version(self.run, changed)
        self._steps.end(value)
        return None
