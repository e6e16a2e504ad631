"""The publish use case: what is owed is sent, and what is not taken is named."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shared.application.publish import Change, Published, publish
from shared.domain.dispatch import Dispatch
from shared.domain.states import State
from tests.support.builders import a_job, reference_to
from tests.support.world import Clock


@dataclass
class Lanes:
    """Takes all but the messages at these indices."""

    refuses: Sequence[int] = ()
    calls: list[Sequence[Dispatch]] = field(default_factory=list)

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        self.calls.append(dispatches)
        return self.refuses


JOBS = [a_job() for _ in range(3)]
RUNNING = replace(JOBS[0], state=State.RUNNING)
CHANGES = [
    Change("1", None, JOBS[0]),
    Change("2", JOBS[0], RUNNING),
    Change("3", None, JOBS[1]),
    Change("4", None, JOBS[2]),
]


def _bodies(published: Published) -> list[object]:
    return [sent.body for sent in published.sent]


def test_the_messages_that_are_owed_are_sent_at_once() -> None:
    lanes = Lanes()

    published = publish(CHANGES, lanes=lanes, clock=Clock())

    assert _bodies(published) == [reference_to(job) for job in JOBS]
    assert published.failed == []
    assert [len(call) for call in lanes.calls] == [3]


def test_a_change_whose_message_was_not_taken_is_named_by_its_sequence() -> None:
    published = publish(CHANGES, lanes=Lanes(refuses=[1]), clock=Clock())

    assert published.failed == ["3"]
    assert _bodies(published) == [reference_to(JOBS[0]), reference_to(JOBS[2])]


def test_changes_that_owe_nothing_call_nobody() -> None:
    lanes = Lanes()

    assert publish([CHANGES[1]], lanes=lanes, clock=Clock()) == Published(sent=[], failed=[])
    assert lanes.calls == []
