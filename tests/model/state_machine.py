"""What may happen next to jobs of three names, in one group and in none: all of it at any time.

Hypothesis would have a rule for each kind of step, and leaves out half of the rules in each example. Most of the others
would then have nothing to do, so there is one rule, which chooses among the steps.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.model import operators, steps
from tests.model.comparison import NAMES, Both, Step
from tests.model.model_types import DAY, HOUR, MINUTE, Asked, Ending
from tests.model.operators import Act

#: Each is submitted under each name. A deadline is so many seconds ahead.
_ASKED: Final = (
    Asked(""),
    Asked("", group="g"),
    Asked("", kind="strict", group="g"),
    Asked("", kind="single"),
    Asked("", delay=MINUTE),
    Asked("", delay=HOUR),
    Asked("", delay=HOUR, group="g"),
    Asked("", deadline=MINUTE),
    Asked("", deadline=MINUTE, delay=HOUR),
    Asked("", deadline=2 * HOUR, delay=HOUR, group="g"),
    Asked("", kind="single", group="g", large=True),
    Asked("", kind="strict", group="g", delay=MINUTE),
    Asked("", large=True),
    Asked("", unique=True),
    Asked("", unique=True, group="g", delay=MINUTE),
)
_ENDINGS: Final = (
    *(Ending(word) for word in ("succeeded", "failed", "permanent error", "gave up", "cancelled", "effect refused")),
    *(Ending(word, after) for word in ("snoozed", "continued") for after in (0, 5, HOUR)),
    *(Ending("failed", after) for after in (5, HOUR)),
    *(Ending("succeeded", then=Asked(name, group=group)) for name in NAMES for group in (None, "g")),
)
_WAITS: Final = (1, MINUTE, 16 * MINUTE, 2 * HOUR, DAY, 2 * DAY)


class Protocol(RuleBasedStateMachine):
    """A deployment."""

    def __init__(self) -> None:
        super().__init__()
        self.both = Both()
        self.acts: list[Act] = []

    def teardown(self) -> None:
        note("\n".join(["The story:", *self.both.story]))
        self.both.close()

    @rule(step=st.deferred(lambda: _STEPS))
    def then(self, step: Step) -> None:
        self.both.play(step)

    def submits(self, draw: st.DrawFn) -> Step:
        asked = draw(st.sampled_from(_ASKED))
        deadline = self.both.reference.now + asked.deadline
        return steps.submit(self.both, replace(asked, name=draw(st.sampled_from(NAMES)), deadline=deadline))

    def submits_again(self, draw: st.DrawFn) -> Step:
        return steps.submit(self.both, draw(st.sampled_from(self.both.asked)))

    def publishes(self, draw: st.DrawFn) -> Step:
        return steps.publish(self.both, draw(st.sampled_from(self.both.untold())))

    def takes(self, draw: st.DrawFn) -> Step:
        """Any message that was ever sent may come late, or once more."""
        return steps.take(self.both, draw(st.sampled_from(list(dict.fromkeys(self.both.reference.lane)))))

    def ends(self, draw: st.DrawFn) -> Step:
        return steps.end(self.both, draw(st.sampled_from(list(self.both.workers))), draw(st.sampled_from(_ENDINGS)))

    def is_interrupted(self, draw: st.DrawFn) -> Step:
        kind = draw(st.sampled_from((steps.save, steps.time_out, steps.kill)))
        return kind(self.both, draw(st.sampled_from(list(self.both.workers))))

    def waits(self, draw: st.DrawFn) -> Step:
        return steps.wait(self.both, draw(st.sampled_from(_WAITS)))

    def waits_for_something(self, draw: st.DrawFn) -> Step:
        """Or not quite until it falls due."""
        soon = self.both.soon()
        return steps.wait(self.both, draw(st.sampled_from((*soon, *(seconds - 0.5 for seconds in soon)))))

    def asks(self, draw: st.DrawFn) -> Step:
        kind = draw(st.sampled_from((steps.cancel, steps.retry, steps.publish_again)))
        return kind(self.both, draw(st.sampled_from(list(self.both.reference.jobs))))

    def looks(self, draw: st.DrawFn) -> Step:
        name = draw(st.sampled_from(list(self.both.reference.jobs)))
        return Step(f"somebody looks at {name}", lambda: self.acts.extend(operators.decide(self.both, name)))

    def acts_on_it(self, draw: st.DrawFn) -> Step:
        return operators.act(self.both, draw(st.sampled_from(self.plain_acts())))

    def passes(self, draw: st.DrawFn) -> Step:
        often = (steps.wake, steps.reconcile, steps.expire, steps.lose_an_answer)
        return draw(st.sampled_from((*often, *often, steps.neglect)))(self.both)

    def plain_acts(self) -> list[Act]:
        return [act for act in self.acts if operators.is_plain(self.both, act)]


_Kind = Callable[[Protocol, st.DrawFn], Step]

#: What brings jobs on comes first, since Hypothesis prefers that. Beside each, whether there is anything for it to do.
_KINDS: Final[tuple[tuple[_Kind, Callable[[Protocol], object]], ...]] = (
    *[(Protocol.publishes, lambda machine: machine.both.reference.stream)] * 2,
    *[(Protocol.takes, lambda machine: machine.both.reference.lane)] * 2,
    *[(Protocol.ends, lambda machine: machine.both.workers)] * 2,
    (Protocol.submits, lambda _machine: True),
    (Protocol.waits, lambda machine: machine.both.reference.jobs),
    (Protocol.waits_for_something, lambda machine: machine.both.soon()),
    (Protocol.asks, lambda machine: machine.both.reference.jobs),
    (Protocol.is_interrupted, lambda machine: machine.both.workers),
    (Protocol.acts_on_it, Protocol.plain_acts),
    (Protocol.looks, lambda machine: machine.both.reference.jobs),
    (Protocol.passes, lambda machine: machine.both.reference.jobs),
    (Protocol.submits_again, lambda machine: machine.both.asked),
)
_MACHINE: Final = st.runner()


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    """One of those that there are at the moment."""
    machine: Protocol = draw(_MACHINE)
    kind, _ = draw(st.sampled_from(_KINDS).filter(lambda kind: bool(kind[1](machine))))
    return kind(machine, draw)


_STEPS: Final[st.SearchStrategy[Step]] = _steps()
