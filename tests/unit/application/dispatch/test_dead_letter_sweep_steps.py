"""What a sweep says while it goes on, and what becomes of a message that SQS does not delete."""

from collections.abc import Sequence

from tests.support.builders import a_job
from tests.unit.application.dispatch.test_sweep_bounds import Queue, Store, a_letter, dead, names, swept
from tidemill.application.dispatch.dead_letter_sweep import Swept
from tidemill.application.ports import ReceivedDeadLetter, Refusal
from tidemill.domain.states import State

LATE = a_job(id="late", state=State.QUEUED)


class Stubborn(Queue):
    """Does not delete the messages of these names, for a reason that names each."""

    def __init__(self, messages: Sequence[ReceivedDeadLetter], *stubborn: str) -> None:
        super().__init__(messages)
        self.stubborn = stubborn

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        super().delete(dead_letters)
        return [
            Refusal(index, error=f"no {each.message_id}")
            for index, each in enumerate(dead_letters)
            if each.message_id in self.stubborn
        ]


def test_a_sweep_says_after_each_batch_what_it_has_done_so_far() -> None:
    jobs = dead(13)
    said: list[Swept] = []

    ended = swept(Queue([a_letter(job) for job in jobs]), Store(*jobs), progress=said.append)

    assert said == [Swept(kept=10, unfinished=True), Swept(kept=13, unfinished=True)]
    assert ended == Swept(kept=13)


def test_a_message_that_sqs_does_not_delete_is_kept_and_counts_as_failed() -> None:
    (kept,) = dead(1)
    gone = [a_job(id=f"gone-{number}") for number in range(2)]
    queue = Stubborn([a_letter(job) for job in (*gone, LATE, kept)], "gone-1", "late")

    assert swept(queue, Store(LATE, kept)) == Swept(outdated=1, nudged=0, kept=3, failed=2, error="no late")
    assert sorted(name for hidden, _ in queue.hidden for name in hidden) == ["dead-000", "gone-1", "late"]
    assert names(gone) == ["gone-0", "gone-1"]


def test_the_last_error_of_a_sweep_stays_known() -> None:
    jobs = [a_job(id=f"gone-{number}") for number in range(11)]
    queue = Stubborn([a_letter(job) for job in jobs], "gone-0")

    assert swept(queue, Store()) == Swept(outdated=10, kept=1, failed=1, error="no gone-0")
