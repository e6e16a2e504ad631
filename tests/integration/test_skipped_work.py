"""A handler skips optional work, and its success says so: the page that describes it, and the declaration."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tidemill import Run, Snooze, job_type
from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import DeclarationError, JobFileError
from tidemill.domain.skipped_work import MOST_SKIPPED, Skipped
from tidemill.domain.states import State
from tidemill.system.job_type_loader import require_backfill_types
from tidemill.testing import run_job


class Nothing(BaseModel):
    pass


def skipping(handler: Any, **backfill: str) -> Any:
    return job_type("test.skips", payload=Nothing, backfill=backfill or {"geo": "test.geo"})(handler)


def test_a_success_keeps_a_mark_for_each_name_that_its_run_skipped() -> None:
    def handler(payload: Nothing, run: Run) -> str:
        run.skipped("geo")
        run.skipped("geo")
        return "done"

    ran = run_job(skipping(handler))

    assert (ran.result, ran.job.skipped) == ("done", (Skipped(name="geo", type="test.geo"),))


def test_a_mark_keeps_the_retention_of_the_type_that_makes_up_for_the_work() -> None:
    makes_up = job_type("test.geo", payload=Nothing, retention_days=90)(lambda payload, run: None)

    ran = run_job(skipping(lambda payload, run: run.skipped("geo")), known=[makes_up])

    assert [mark.retention for mark in ran.job.skipped] == [timedelta(days=90)]


def test_a_run_that_does_not_succeed_leaves_no_mark() -> None:
    def handler(payload: Nothing, run: Run) -> Snooze:
        run.skipped("geo")
        return Snooze(timedelta(0))

    assert run_job(skipping(handler)).job.skipped == ()


def test_work_that_nothing_makes_up_for_cannot_be_skipped() -> None:
    def handler(payload: Nothing, run: Run) -> None:
        run.skipped("agent")

    ran = run_job(skipping(handler))

    assert (ran.state, str(ran.raised)) == (
        State.RETRYING,
        "nothing makes up for 'agent': name a job type for it in `backfill` of the job type",
    )


@pytest.mark.parametrize(
    "backfill", [{"Geo": "test.geo"}, {"geo": "Geo!"}, {f"n{n}": "t" for n in range(MOST_SKIPPED + 1)}]
)
def test_a_wrong_backfill_is_refused_where_it_is_declared(backfill: dict[str, str]) -> None:
    with pytest.raises(DeclarationError):
        skipping(lambda payload, run: None, **backfill)


def test_a_backfill_by_an_unknown_type_stops_the_synthesis() -> None:
    known = skipping(lambda payload, run: None)

    with pytest.raises(JobFileError, match=r"names the type 'test.geo' for 'geo', which does not exist"):
        require_backfill_types(JobTypes({known.name: known}))
