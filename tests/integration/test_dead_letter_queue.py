"""The letters of a lane in SQS, as an operator's tool holds them."""

import pytest

from tests.support.builders import a_job, letter_for, reference_to
from tests.support.deployed_functions import Mill
from tests.support.job_tables import client
from tidemill.sqs import messages
from tidemill.sqs.queues import SqsLetterBox


@pytest.fixture
def box(mill: Mill) -> SqsLetterBox:
    return SqsLetterBox(client("sqs"), mill.letters)


def _write(mill: Mill, *bodies: str) -> None:
    for body in bodies:
        client("sqs").send_message(QueueUrl=mill.letters, MessageBody=body)


def test_letters_are_read_with_what_they_are_about(mill: Mill, box: SqsLetterBox) -> None:
    job = a_job()
    wire = messages.encode(letter_for(job))
    _write(mill, wire, messages.encode(reference_to(job)), "rubbish", wire.replace('"schema":1', '"schema":2'))

    letters = box.receive()

    assert [(letter.body, letter.newer) for letter in letters] == [
        (letter_for(job), False),
        (reference_to(job), False),
        (None, False),
        (None, True),
    ]
    assert [letter.reference for letter in letters] == [reference_to(job)] * 2 + [None] * 2
    assert all(abs((mill.now() - letter.sent_at).total_seconds()) < 60 for letter in letters)


def test_what_is_received_is_hidden_until_it_is_put_back(mill: Mill, box: SqsLetterBox) -> None:
    _write(mill, *("rubbish" for _ in range(12)))
    letters = [*box.receive(), *box.receive()]
    assert (len(letters), box.receive()) == (12, [])

    box.put_back(letters)

    assert len([*box.receive(), *box.receive()]) == 12


def test_what_is_deleted_is_gone(mill: Mill, box: SqsLetterBox) -> None:
    _write(mill, *("rubbish" for _ in range(12)))

    box.delete([*box.receive(), *box.receive()])

    assert mill.depth(mill.letters) == 0
