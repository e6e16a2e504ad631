"""A batch keeps the order of jobs that belong together, stops in time, and answers each job for itself."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import PendingSubmission
from tidemill.application.submission.submit_batch import Answer, submit_all
from tidemill.domain.errors import KeyReusedError, StoreUnavailableError, TidemillError
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission


@dataclass
class Submits:
    """`Submit`, whose checks and writes are those of the test. The group of a submission is its serial key."""

    inserted: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    refuses: Exception | None = None
    write: Callable[[str], None] = lambda _type: None
    plain: bool = False

    def pending(self, submission: Submission, *, tenant: str, trace: str) -> PendingSubmission:
        assert tenant == TENANT
        self.traces.append(trace)
        if self.refuses:
            raise self.refuses

        def insert() -> Accepted:
            self.write(submission.type)
            self.inserted.append(submission.type)
            return Accepted(job=a_job(id=submission.type), replayed=False)

        plain = Accepted(job=a_job(id=submission.type), replayed=False) if self.plain else None
        keys = [key for key in (submission.key, submission.group) if key]
        return PendingSubmission(serial_keys=keys, insert=insert, plain=lambda: plain)


def answered(submits: Submits, *submissions: Any, **options: Any) -> list[Answer]:
    return submit_all(submits, submissions, **{"tenant": TENANT, "trace": "t", "overlap": 8, **options})  # type: ignore[arg-type]  # the part that it uses


def ids(answers: list[Answer]) -> list[str]:
    return [answer.job.id if isinstance(answer, Accepted) else type(answer).__name__ for answer in answers]


def test_answers_come_in_the_order_of_the_submissions_with_a_trace_of_their_own() -> None:
    submits = Submits()
    submissions = [Submission(type="a"), KeyReusedError("no"), Submission(type="b"), Submission(type="c", group="g")]

    assert ids(answered(submits, *submissions)) == ["a", "KeyReusedError", "b", "c"]
    assert submits.traces == ["t/0", "t/2", "t/3"]


def test_jobs_of_one_group_are_written_in_their_order_and_others_beside_them() -> None:
    begun = threading.Event()

    def write(type_: str) -> None:
        if type_ == "first":
            assert begun.wait(PATIENCE_SECONDS), "the other job is written meanwhile"
        if type_ == "other":
            begun.set()

    submits = Submits(write=write)
    group = [Submission(type=name, group="g") for name in ("first", "second", "third")]

    answered(submits, *group, Submission(type="other"))

    assert [name for name in submits.inserted if name != "other"] == ["first", "second", "third"]


def test_an_error_of_one_check_or_write_is_its_answer() -> None:
    def write(type_: str) -> None:
        if type_ == "a":
            raise ZeroDivisionError

    assert ids(answered(Submits(write=write), Submission(type="a"), Submission(type="b"))) == ["ZeroDivisionError", "b"]
    assert ids(answered(Submits(refuses=TidemillError("no")), Submission(type="a"))) == ["TidemillError"]


def test_an_empty_batch_has_no_answers() -> None:
    assert answered(Submits()) == []


@pytest.mark.parametrize(("passed", "written"), [(4.0, True), (5.0, True), (5.5, False)])
def test_no_write_begins_after_the_time_of_the_batch(
    monkeypatch: pytest.MonkeyPatch, passed: float, *, written: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def write(_type: str) -> None:
        now[0] = 100.0 + passed

    submits = Submits(write=write)
    answers = answered(submits, *[Submission(type=name, group="g") for name in "ab"], seconds=5.0)

    assert submits.inserted == ["a", "b"][: 1 + written]
    assert isinstance(answers[1], StoreUnavailableError) is not written


def test_jobs_go_together_by_25_and_only_the_first_of_those_that_may_be_the_same() -> None:
    calls: list[list[str]] = []

    def together(jobs: Sequence[Job]) -> Sequence[bool]:
        calls.append([job.id for job in jobs])
        return [job.id != "left" for job in jobs]

    submits = Submits(plain=True)
    names = [*(f"n{n}" for n in range(25)), "left", "last"]
    same = [Submission(type=name, group="k") for name in ("first", "second")]

    answers = answered(submits, *(Submission(type=name) for name in names), *same, together=together)

    assert ids(answers) == [*names, "first", "second"]
    assert sorted(calls) == sorted([names[:25], ["left", "last", "first"]])
    assert sorted(submits.inserted) == ["left", "second"]


def test_no_more_writes_run_at_once_than_may_overlap() -> None:
    running: list[str] = []
    most = [0]

    def write(name: str) -> None:
        running.append(name)
        most[0] = max(most[0], len(running))
        # A third one could begin meanwhile.
        time.sleep(0.003)
        running.remove(name)

    answered(Submits(write=write), *(Submission(type=f"n{n}") for n in range(12)), overlap=2)

    assert most == [2]


def test_those_that_belong_together_begin_with_the_first_of_them() -> None:
    submits = Submits()
    first, other, second = Submission(type="a", group="g"), Submission(type="b"), Submission(type="c", group="g")

    answered(submits, first, other, second, overlap=1)

    assert submits.inserted == ["a", "c", "b"]


def test_one_job_takes_its_own_call() -> None:
    submits = Submits(plain=True)

    answered(submits, Submission(type="a"), together=lambda _jobs: pytest.fail("one is not several"))

    assert submits.inserted == ["a"]


def test_submissions_that_belong_together_by_way_of_others_are_written_in_their_order() -> None:
    submits = Submits(plain=True)
    calls: list[list[str]] = []

    def together(jobs: Sequence[Job]) -> Sequence[bool]:
        calls.append([job.id for job in jobs])
        return [True] * len(jobs)

    same = [
        Submission(type="a", group="g"),
        Submission(type="b", key="k"),
        Submission(type="c", key="k", group="g"),
        Submission(type="d", group="g"),
        Submission(type="e", key="k"),
    ]

    answers = answered(submits, *same, Submission(type="other"), together=together)

    assert ids(answers) == ["a", "b", "c", "d", "e", "other"]
    assert sorted(calls[0]) == ["a", "other"]
    assert submits.inserted == ["b", "c", "d", "e"]
