"""The worst bodies of each route: their work grows as their size, and their answers are small."""

import json
from collections import Counter
from typing import Final

import pytest

from tests.support.counted_instructions import counting
from tests.support.deployed_functions import Mill, forget
from tests.support.flow_calls import a_flow, node
from tests.support.http_events import Answer, call
from tests.support.job_tables import Table
from tests.support.payload_bucket import PayloadBucket
from tests.support.worst_bodies import WorstBody, worst_bodies
from tidemill.entrypoints import control, submit
from tidemill.names import FLOW_PACKAGE, Env

_ALL: Final = list(worst_bodies())
#: The largest answer that lists faults, in bytes of JSON. A batch has a hundred of them.
_LARGEST_ANSWER: Final = 40_000
#: Twice the size takes about twice the work, and four times if it is quadratic.
_LINEAR: Final = 3.0


@pytest.fixture
def flow(mill: Mill, table: Table, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of one, with a bucket for the largest payloads."""
    monkeypatch.setenv(Env.FILES_BUCKET, PayloadBucket(table).name)
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    forget()
    return a_flow(node("a"))


def sent(worst: WorstBody, size: int, flow: str) -> Answer:
    path = worst.route.replace("{id}", flow)
    function = control if path.endswith(("cancel", "go")) else submit
    return call(function, "POST", path, body=worst.of_size(size), headers={"content-type": "application/json"})


#: A hundred jobs take the same work with any payload: to write them.
@pytest.mark.parametrize("worst", [each for each in _ALL if not each.name.startswith("a hundred")], ids=str)
def test_the_work_of_a_body_grows_as_its_size(worst: WorstBody, flow: str) -> None:
    """In instructions of Python, which a busy machine does not change."""
    sizes = [min(worst.most_bytes, 64_000) // 4, min(worst.most_bytes, 64_000) // 2]
    work = []
    for size in [*sizes[:1], *sizes]:
        counts: Counter[str] = Counter()
        with counting(counts):
            sent(worst, size, flow)
        work.append(counts.total())
    assert work[2] < _LINEAR * work[1]


@pytest.mark.parametrize("worst", _ALL, ids=str)
def test_the_largest_body_has_a_small_answer(worst: WorstBody, flow: str) -> None:
    body = worst.of_size(worst.most_bytes)
    assert 0.5 * worst.most_bytes < len(body) <= worst.most_bytes, "it is as large as a caller may send it"
    answer = sent(worst, worst.most_bytes, flow)
    assert answer.status in {200, 202, 404, 409, 413, 422}, answer.body
    many = 100 if worst.route == "/jobs/batch" else 1
    accepted = answer.status < 300
    assert accepted or len(json.dumps(answer.body)) < many * _LARGEST_ANSWER
