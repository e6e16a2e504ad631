"""The steps that may happen next to jobs of three names, with and without a group.

Hypothesis usually has one rule for each kind of step and disables half of the rules in each example. Most of the others
could then do nothing. So one rule chooses among the possible steps.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.model import operators, steps
from tests.model.comparison import NAMES, Comparison, Step
from tests.model.model_types import DAY, HOUR, MINUTE, Ending, SubmitRequest
from tests.model.operators import Act

#: Each is submitted under each name. A deadline is in seconds from now.
_REQUESTS: Final = (
    SubmitRequest(""),
    SubmitRequest("", group="g"),
    SubmitRequest("", kind="strict", group="g"),
    SubmitRequest("", kind="single"),
    SubmitRequest("", delay=MINUTE),
    SubmitRequest("", delay=HOUR),
    SubmitRequest("", delay=HOUR, group="g"),
    SubmitRequest("", deadline=MINUTE),
    SubmitRequest("", deadline=MINUTE, delay=HOUR),
    SubmitRequest("", deadline=2 * HOUR, delay=HOUR, group="g"),
    SubmitRequest("", kind="single", group="g", large=True),
    SubmitRequest("", kind="strict", group="g", delay=MINUTE),
    SubmitRequest("", large=True),
    SubmitRequest("", unique=True),
    SubmitRequest("", unique=True, group="g", delay=MINUTE),
)
_ENDINGS: Final = (
    *(Ending(word) for word in ("succeeded", "failed", "permanent error", "gave up", "cancelled", "effect refused")),
    *(Ending(word, after) for word in ("snoozed", "continued") for after in (0, 5, HOUR)),
    *(Ending("failed", after) for after in (5, HOUR)),
    *(Ending("succeeded", then=SubmitRequest(name, group=group)) for name in NAMES for group in (None, "g")),
)
_WAITS: Final = (1, MINUTE, 16 * MINUTE, 2 * HOUR, DAY, 2 * DAY)


class Protocol(RuleBasedStateMachine):
    """Draws the steps of one example."""

    def __init__(self) -> None:
        super().__init__()
        self.comparison = Comparison()
        self.acts: list[Act] = []

    def teardown(self) -> None:
        note("\n".join(["The story:", *self.comparison.story]))
        self.comparison.close()

    @rule(step=st.deferred(lambda: _STEPS))
    def then(self, step: Step) -> None:
        self.comparison.apply(step)

    def submits(self, draw: st.DrawFn) -> Step:
        request = draw(st.sampled_from(_REQUESTS))
        deadline = self.comparison.reference.now + request.deadline
        return steps.submit(self.comparison, replace(request, name=draw(st.sampled_from(NAMES)), deadline=deadline))

    def submits_again(self, draw: st.DrawFn) -> Step:
        return steps.submit(self.comparison, draw(st.sampled_from(self.comparison.requests)))

    def publishes(self, draw: st.DrawFn) -> Step:
        return steps.publish(self.comparison, draw(st.sampled_from(self.comparison.unpublished())))

    def takes(self, draw: st.DrawFn) -> Step:
        """Any message that was ever sent may arrive late or again."""
        return steps.take(self.comparison, draw(st.sampled_from(list(dict.fromkeys(self.comparison.reference.lane)))))

    def ends(self, draw: st.DrawFn) -> Step:
        return steps.end(
            self.comparison, draw(st.sampled_from(list(self.comparison.workers))), draw(st.sampled_from(_ENDINGS))
        )

    def is_interrupted(self, draw: st.DrawFn) -> Step:
        kind = draw(st.sampled_from((steps.save, steps.time_out, steps.kill)))
        return kind(self.comparison, draw(st.sampled_from(list(self.comparison.workers))))

    def waits(self, draw: st.DrawFn) -> Step:
        return steps.wait(self.comparison, draw(st.sampled_from(_WAITS)))

    def waits_until_due(self, draw: st.DrawFn) -> Step:
        """Wait until something is due, or until just before."""
        next_due = self.comparison.next_due()
        return steps.wait(self.comparison, draw(st.sampled_from((*next_due, *(seconds - 0.5 for seconds in next_due)))))

    def controls(self, draw: st.DrawFn) -> Step:
        kind = draw(st.sampled_from((steps.cancel, steps.retry, steps.publish_again)))
        return kind(self.comparison, draw(st.sampled_from(list(self.comparison.reference.jobs))))

    def reads(self, draw: st.DrawFn) -> Step:
        name = draw(st.sampled_from(list(self.comparison.reference.jobs)))
        return Step(f"an operator reads {name}", lambda: self.acts.extend(operators.decide(self.comparison, name)))

    def acts_on_it(self, draw: st.DrawFn) -> Step:
        return operators.act(self.comparison, draw(st.sampled_from(self.specified_acts())))

    def runs_in_background(self, draw: st.DrawFn) -> Step:
        often = (steps.wake, steps.reconcile, steps.expire, steps.lose_response)
        return draw(st.sampled_from((*often, *often, steps.only_reconcile)))(self.comparison)

    def specified_acts(self) -> list[Act]:
        return [act for act in self.acts if operators.is_specified(self.comparison, act)]


_Kind = Callable[[Protocol, st.DrawFn], Step]

#: Steps that advance jobs come first, since Hypothesis prefers early ones. Beside each, whether it is possible.
_KINDS: Final[tuple[tuple[_Kind, Callable[[Protocol], object]], ...]] = (
    *[(Protocol.publishes, lambda machine: machine.comparison.reference.stream)] * 2,
    *[(Protocol.takes, lambda machine: machine.comparison.reference.lane)] * 2,
    *[(Protocol.ends, lambda machine: machine.comparison.workers)] * 2,
    (Protocol.submits, lambda _machine: True),
    (Protocol.waits, lambda machine: machine.comparison.reference.jobs),
    (Protocol.waits_until_due, lambda machine: machine.comparison.next_due()),
    (Protocol.controls, lambda machine: machine.comparison.reference.jobs),
    (Protocol.is_interrupted, lambda machine: machine.comparison.workers),
    (Protocol.acts_on_it, Protocol.specified_acts),
    (Protocol.reads, lambda machine: machine.comparison.reference.jobs),
    (Protocol.runs_in_background, lambda machine: machine.comparison.reference.jobs),
    (Protocol.submits_again, lambda machine: machine.comparison.requests),
)
_MACHINE: Final = st.runner()


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    """Draw one of the possible steps."""
    machine: Protocol = draw(_MACHINE)
    kind, _ = draw(st.sampled_from(_KINDS).filter(lambda kind: bool(kind[1](machine))))
    return kind(machine, draw)


_STEPS: Final[st.SearchStrategy[Step]] = _steps()
