"""What `explain` says of batches and flows that have not ended."""

import json
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Answer, Facts, Reason
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.names import BATCH_TYPE, FLOW_TYPE

LATER = NOW + timedelta(minutes=5)


def waiting_for(signal: str, job_type: str, **fields: object) -> Job:
    awaited = Awaited(cause=Cause.SIGNAL, name=signal, since=NOW, until=LATER + timedelta(hours=1))
    return a_job(type=job_type, state=State.PARKED, due=awaited.until, wait=awaited.wait, awaited=awaited, **fields)


def explained(job: Job, *stopped: str) -> Answer:
    return explain(replace(Facts(job=job, now=LATER), stopped=frozenset(stopped)))


def test_a_flow_names_the_command_that_shows_the_parents_of_a_waiting_node() -> None:
    flow = waiting_for("look", FLOW_TYPE, progress_done=2, progress_total=5)
    answer = explained(flow)
    assert (answer.reason, answer.until) == (Reason.AWAITED, flow.due)
    looks, nodes = answer.sentences
    assert looks.startswith("It looks at its nodes again ")
    assert nodes.startswith("2 of its 5 nodes had ended at its last look. ")
    assert f"`tidemill flow {flow.id} --tenant {flow.tenant}`" in nodes
    assert "Wake is not called" in explained(flow, "wake").sentences[1]


def test_a_flow_that_is_being_cancelled_says_so() -> None:
    signals = (Signal(name="cancelled", data="true", at=NOW + SECOND),)
    assert "The flow was cancelled " in explained(waiting_for("look", FLOW_TYPE, signals=signals)).sentences[1]


@pytest.mark.parametrize(("counts", "shown"), [({"queued": 3, "dead": 1}, "3 queued, 1 dead"), ({}, None)])
def test_an_open_batch_names_the_command_that_closes_it(counts: dict[str, int], shown: str | None) -> None:
    answer = explained(waiting_for("closed", BATCH_TYPE, checkpoint=json.dumps({"counts": counts})))
    looks, is_open, *counted = answer.sentences
    assert looks.endswith("or as soon as it is closed.")
    assert "its owner closes it with `tidemill batch " in is_open
    assert [f"Its jobs at its last look: {shown}." in each for each in counted] == [True] * bool(shown)
