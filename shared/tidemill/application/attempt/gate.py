"""A gate: the part of one feature in an attempt. `attempt_features` lists the gates in their order."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.domain.attempt.outcomes import Outcome

if TYPE_CHECKING:
    from tidemill.application.breakers.breaker_use import SharedCall


class Gate:
    """It does nothing by default: each feature overrides what it takes part in.

    A job enters the gates in their order, and leaves them in the reverse order. The thread of the message calls them.
    When time is up, the thread of the invocation calls `instead_of` and `ended`, and for a stray also `leave`, while
    the handler may still be at work.
    """

    def __init__(self, run: ClaimedRun) -> None:
        self.run = run

    def enter(self) -> Outcome | None:
        """Let the job pass, or return the outcome that it has instead of a run. May raise, as for `instead_of`."""

    def begin(self) -> None:
        """The handler is about to start, perhaps some time after `enter`. May raise, as for `instead_of`."""

    def share(self) -> None:
        """The next call of the handler is for other jobs, too."""

    def counts_in(self, call: "SharedCall") -> None:
        """The next call of the handler, whether others share it or not."""

    def around_call(self) -> AbstractContextManager[object]:
        """Return what is entered around the call. It may raise another error than the handler has raised."""
        return nullcontext()

    def returned(self, value: Any) -> Outcome | None:
        """The handler has returned `value`. Return the outcome of the run if it does not follow from that."""

    def instead_of(self, error: Exception) -> Outcome | None:
        """Return the outcome of a run that ended with an error of this feature; None for every other error."""

    def ended(self, outcome: Outcome) -> None:
        """The outcome is known, and is about to be settled. The first one counts."""

    def leave(self) -> None:
        """The attempt is over. Best effort, and perhaps not the first time."""


#: Makes the gates of a run, in the order in which the job enters them.
GatesOf = Callable[[ClaimedRun], Sequence[Gate]]
