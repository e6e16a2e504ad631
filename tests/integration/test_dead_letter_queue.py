"""The dead-letter messages of a lane in SQS, as an operator's tool reads them."""

from datetime import timedelta

import pytest

from tests.support.builders import a_job, letter_for, reference_to
from tests.support.deployed_functions import Mill
from tests.support.job_tables import client
from tidemill.sqs import messages
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue

HIDDEN = timedelta(minutes=2)


@pytest.fixture
def box(mill: Mill) -> SqsDeadLetterQueue:
    return SqsDeadLetterQueue(client("sqs"), mill.dead_letters)


def _write(mill: Mill, *bodies: str) -> None:
    for body in bodies:
        client("sqs").send_message(QueueUrl=mill.dead_letters, MessageBody=body)


def test_messages_are_decoded_with_their_references(mill: Mill, box: SqsDeadLetterQueue) -> None:
    job = a_job()
    wire = messages.encode(letter_for(job))
    _write(mill, wire, messages.encode(reference_to(job)), "rubbish", wire.replace('"schema":1', '"schema":2'))

    dead_letters = box.receive(hidden_for=HIDDEN)

    assert [(dead_letter.body, dead_letter.newer) for dead_letter in dead_letters] == [
        (letter_for(job), False),
        (reference_to(job), False),
        (None, False),
        (None, True),
    ]
    assert [dead_letter.reference for dead_letter in dead_letters] == [reference_to(job)] * 2 + [None] * 2
    assert all(abs((mill.now() - dead_letter.sent_at).total_seconds()) < 60 for dead_letter in dead_letters)


def test_received_messages_are_hidden_until_they_are_put_back(mill: Mill, box: SqsDeadLetterQueue) -> None:
    _write(mill, *("rubbish" for _ in range(12)))
    dead_letters = [*box.receive(hidden_for=HIDDEN), *box.receive(hidden_for=HIDDEN)]
    assert (len(dead_letters), box.receive(hidden_for=HIDDEN)) == (12, [])

    box.hide(dead_letters, duration=timedelta(0))

    assert len([*box.receive(hidden_for=HIDDEN), *box.receive(hidden_for=HIDDEN)]) == 12


def test_deleted_messages_are_gone(mill: Mill, box: SqsDeadLetterQueue) -> None:
    _write(mill, *("rubbish" for _ in range(12)))

    box.delete([*box.receive(hidden_for=HIDDEN), *box.receive(hidden_for=HIDDEN)])

    assert mill.depth(mill.dead_letters) == 0
