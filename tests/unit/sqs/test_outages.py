"""While SQS or CloudWatch does not respond, each call says so, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.support.builders import LEASE, NOW
from tidemill.application.ports import ReceivedDeadLetter
from tidemill.domain.errors import StoreUnavailableError
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.sqs.queue_depth import backlog, delay, oldest_age
from tidemill.sqs.source_queue import SourceQueue


class Out:
    """A client whose calls get no answer, but for the first ones, which get `answers`."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def _call(self, **_request: Any) -> Any:
        if self._answers:
            return self._answers.pop(0)
        raise ConnectTimeoutError(endpoint_url="https://sqs.invalid")

    def __getattr__(self, _name: str) -> Callable[..., Any]:
        return self._call


CLIENT: Any = Out()
DEAD_LETTERS = SqsDeadLetterQueue(CLIENT, "dead")
LETTER = ReceivedDeadLetter(message_id="1", receipt="r", body=None, sent_at=NOW, newer=False)
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible")


def _with_a_backlog() -> Any:
    return Out({"Attributes": dict.fromkeys(COUNTS, "1")})


CALLS: dict[str, Callable[[], object]] = {
    "receive": lambda: DEAD_LETTERS.receive(hidden_for=LEASE),
    "delete": lambda: DEAD_LETTERS.delete([LETTER]),
    "hide": lambda: DEAD_LETTERS.hide([LETTER], duration=LEASE),
    "forward": lambda: SourceQueue(CLIENT, queue="work", dead_letters="dead").forward("{}"),
    "backlog": lambda: backlog(CLIENT, "lane"),
    "age": lambda: oldest_age(CLIENT, "lane", now=NOW),
    "delay": lambda: delay(CLIENT, CLIENT, "lane", now=NOW),
    "delay, whose retention gets no answer": lambda: delay(_with_a_backlog(), CLIENT, "lane", now=NOW),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_an_answer_is_an_outage(name: str) -> None:
    with pytest.raises(StoreUnavailableError):
        CALLS[name]()
