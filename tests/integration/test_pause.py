"""Pauses through the functions: nothing of what is paused starts, nothing is lost, and it all runs afterwards."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.test_signals import FACT, signal, waits
from tests.support.deployed_functions import TENANT, Mill
from tests.support.http_events import Answer, call
from tidemill import Done, Submission, composition
from tidemill.application.configuration import CACHED_FOR, Configurator
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line
from tidemill.dynamodb.limits.limit_item import PAUSE_PREFIX
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints import control, submit
from tidemill.names import FLOW_PACKAGE, JOB_KEY, Env
from tidemill.sqs import messages

MINUTE = timedelta(minutes=1)
TYPE = "type=test.scripted"


@pytest.fixture(autouse=True)
def ran(mill: Mill) -> list[str]:
    """The ids of the jobs that ran, in order."""
    mill.stop_clock()
    found: list[str] = []
    mill.script.handler = lambda _payload, run: found.append(run.job_id)
    return found


def configurator(mill: Mill) -> Configurator:
    return Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)


def pause(mill: Mill, target: str = TYPE, *, until: Any = None, **value: Any) -> None:
    changes = configurator(mill)
    changes.set(changes.read(), f"pauses.{target}", value, by="arn:ops", reason="a test", until=until)
    mill.late += CACHED_FOR


def resume(mill: Mill, target: str = TYPE) -> None:
    changes = configurator(mill)
    changes.remove(changes.read(), f"pauses.{target}", by="arn:ops", reason="")
    mill.late += CACHED_FOR


def waken(mill: Mill, *job_ids: str) -> None:
    """Some minutes of wake. The queues of moto do not follow the clock of the test, so their delays are left out."""
    for _ in range(3):
        mill.wake()
        mill.late += MINUTE
        mill.run()
        late = [job for job in map(mill.job, job_ids) if job.state is State.QUEUED]
        if late:
            mill.work(mill.event(*(messages.encode(reference_to(job)) for job in late)))


@pytest.mark.parametrize("while_paused", [True, False])
def test_a_signal_for_a_paused_wait_of_some_minutes_starts_the_job_at_the_end_of_the_pause(
    mill: Mill, *, while_paused: bool
) -> None:
    mill.script.handler = waits(timedelta(minutes=14))
    job_id = mill.accepted()
    pausing = configurator(mill)
    mill.work(mill.event(messages.encode(reference_to(mill.job(job_id)))))
    end = mill.job(job_id).due
    assert end
    pausing.set(pausing.read(), f"pauses.{TYPE}", {}, by="arn:ops", reason="a test", until=None)
    mill.late += CACHED_FOR
    mill.run()
    wait = mill.job(job_id).wait
    assert wait
    assert (wait.cause, wait.not_before) == (Cause.PAUSE, end)

    if while_paused:
        signal(job_id)
    resume(mill)
    mill.wake()
    if not while_paused:
        assert mill.job(job_id).due == end
        signal(job_id)
    waken(mill, job_id)
    assert mill.get(job_id).body["result"]["told"] == FACT
    assert mill.now() < end


def test_a_job_submitted_while_paused_is_never_sent_and_runs_after_the_end(mill: Mill, ran: list[str]) -> None:
    pause(mill)
    job_ids = []
    for _ in range(3):
        mill.late += timedelta(seconds=1)
        job_ids.append(mill.accepted())
    mill.run()

    jobs = [mill.job(job_id) for job_id in job_ids]
    assert {(job.state, job.attempt, job.lease.claimed_at) for job in jobs} == {(State.PARKED, 0, None)}
    assert (ran, mill.depth(mill.queue), mill.calls["sqs.SendMessageBatch"]) == ([], 0, 0)
    waken(mill)
    assert ran == []

    resume(mill)
    waken(mill, *job_ids)

    assert sorted(ran) == job_ids
    assert {(mill.job(job_id).state, mill.job(job_id).attempt) for job_id in job_ids} == {(State.SUCCEEDED, 1)}


def test_a_message_that_was_sent_before_costs_one_receive(mill: Mill, ran: list[str]) -> None:
    job_id = mill.accepted()
    mill.publish()
    pause(mill)

    assert mill.work(mill.receive()) == []

    assert (mill.job(job_id).state, mill.job(job_id).attempt, ran) == (State.PARKED, 0, [])
    assert mill.depth(mill.queue) == 0
    resume(mill)
    waken(mill)
    assert ran == [job_id]


def test_a_pause_ends_by_itself_and_its_jobs_start_at_its_rate(mill: Mill, ran: list[str]) -> None:
    pause(mill, until=mill.now() + 2 * MINUTE, rate=1)
    job_ids = [mill.accepted() for _ in range(3)]
    mill.run()
    mill.late += 2 * MINUTE

    mill.wake()

    due = sorted(job.due for job in map(mill.job, job_ids) if job.due)
    assert [later - due[0] for later in due] == [timedelta(seconds=number) for number in range(3)]
    waken(mill, *job_ids)
    assert sorted(ran) == sorted(job_ids)


def test_a_retry_during_a_pause_keeps_its_own_time(mill: Mill) -> None:
    job_id = mill.accepted()

    def fails(*_: Any) -> None:
        pause(mill)
        raise ValueError("once")

    mill.script.handler = fails
    mill.run()

    parked = mill.job(job_id)
    assert (parked.state, parked.attempt, len(parked.errors)) == (State.PARKED, 1, 1)
    assert parked.wait is not None
    assert (parked.wait.cause, parked.wait.key) == (Cause.PAUSE, TYPE)


@pytest.mark.parametrize("target", ["lane=default", f"tenant={TENANT}", f"group={TENANT} orders"])
def test_a_lane_a_tenant_and_a_group_can_be_paused_and_a_group_keeps_its_order(
    mill: Mill, ran: list[str], target: str
) -> None:
    pause(mill, target)
    body = '{"type": "test.scripted", "payload": {}, "group": "orders"}'
    job_ids = [mill.post_text(body).body["id"] for _ in range(3)]
    mill.run()
    assert [mill.job(job_id).state for job_id in job_ids] == [State.PARKED, State.WAITING, State.WAITING]

    resume(mill, target)
    waken(mill)

    assert ran == job_ids


def test_a_job_with_two_pauses_waits_for_both(mill: Mill, ran: list[str]) -> None:
    pause(mill)
    pause(mill, "lane=default")
    job_id = mill.accepted()
    mill.run()
    resume(mill, "lane=default")
    waken(mill)
    assert (mill.job(job_id).state, ran) == (State.PARKED, [])

    resume(mill)
    waken(mill)

    assert ran == [job_id]


def test_a_pause_of_days_keeps_its_jobs_and_its_line(mill: Mill, ran: list[str]) -> None:
    pause(mill)
    job_id = mill.accepted()
    mill.run()
    mill.late += 3 * LONGEST_PARKED
    # Reconcile does this with a job that is overdue.
    composition.parts().store.unpark(mill.job(job_id), now=mill.now(), due=mill.now())
    mill.run()
    assert (mill.job(job_id).state, ran) == (State.PARKED, [])

    resume(mill)
    waken(mill)

    assert ran == [job_id]


def test_the_line_of_an_ended_pause_is_forgotten(mill: Mill) -> None:
    pause(mill)
    resume(mill)
    mill.late += timedelta(minutes=21)
    mill.wake()

    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    (line,) = [item for item in items if item[JOB_KEY]["S"].startswith(PAUSE_PREFIX)]
    assert "attention" not in line
    assert "expires_at" in line


def test_a_job_that_is_parked_by_a_stale_configuration_runs_all_the_same(
    mill: Mill, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pause(mill)
    mill.wake()
    with monkeypatch.context() as unreadable:
        unreadable.setattr(composition.parts().configuration, "_read", _denied)
        resume(mill)
        mill.late += timedelta(minutes=21)
        line = Line.for_pause(TYPE)
        # Wake does this, because its configuration is not stale.
        composition.parts().limits.clear(line, composition.parts().limits.look(line))
        job_id = mill.accepted()
        mill.run()
        assert (mill.job(job_id).state, ran) == (State.PARKED, [])

    waken(mill, job_id)

    assert ran == [job_id]


def test_a_wake_that_has_not_read_the_configuration_leaves_the_jobs_of_a_pause_parked(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause(mill)
    job_id = mill.accepted()
    mill.run()
    parked = mill.job(job_id)
    composition.parts().configuration._known_at = None
    monkeypatch.setattr(composition.parts().configuration, "_read", _denied)
    monkeypatch.setattr(composition.parts().configuration, "_known", NOTHING_SET)
    mill.late += CACHED_FOR

    mill.wake()

    assert parked.state is State.PARKED
    assert mill.job(job_id) == parked


def _denied() -> RuntimeConfiguration:
    raise StoreUnavailableError("denied")


def test_with_reject_new_the_api_answers_503_with_retry_after(mill: Mill) -> None:
    pause(mill, reject_new=True)
    refused = mill.post()
    assert (refused.status, refused.body["type"]) == (503, "urn:tidemill:problem:paused")
    assert refused.headers["Retry-After"] == "60"
    assert "paused the type of this job" in refused.body["detail"]
    assert "arn:ops" not in str(refused.body)
    batch = '{"jobs": [{"type": "test.scripted", "payload": {}}, {"type": "test.noop", "payload": {}}]}'
    answer = call(submit, "POST", "/jobs/batch", body=batch, headers={"content-type": "application/json"})
    assert [each["status"] for each in answer.body["jobs"]] == [503, 202]
    assert mill.stored() == 4  # the configuration, its change, the line of the pause, one job

    resume(mill)
    assert mill.post().status == 202


@pytest.mark.parametrize("target", [TYPE, f"tenant={TENANT}", "lane=default"])
def test_with_reject_new_a_flow_gets_no_nodes_over_http(
    mill: Mill, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    flow = posted("/flows", nodes=[{"name": "first", "type": "test.scripted"}]).body["id"]
    path = f"/flows/{flow}/nodes"
    assert posted(path, nodes=[{"name": "second", "type": "test.scripted", "after": ["first"]}]).status == 200
    pause(mill, target, reject_new=True)

    refused = posted(path, nodes=[{"name": "third", "type": "test.scripted"}])
    again = posted(path, nodes=[{"name": "second", "type": "test.scripted", "after": ["first"]}])

    assert (refused.status, refused.body["type"]) == (503, "urn:tidemill:problem:paused")
    assert refused.headers["Retry-After"] == "60"
    assert (again.status, again.body["size"]) == (200, 2)
    resume(mill, target)
    assert posted(path, nodes=[{"name": "third", "type": "test.scripted"}]).body["size"] == 3


def test_with_reject_new_nothing_is_undone_over_http(mill: Mill) -> None:
    mill.script.handler = lambda _payload, _run: Done(undo=Submission(type="test.noop", payload={}))
    job_id = mill.accepted()
    mill.run()
    pause(mill, "type=test.noop", reject_new=True)

    refused = call(control, "POST", f"/jobs/{job_id}/undo")

    assert (refused.status, refused.body["type"]) == (503, "urn:tidemill:problem:paused")
    resume(mill, "type=test.noop")
    first = call(control, "POST", f"/jobs/{job_id}/undo")
    assert first.status == 200
    pause(mill, "type=test.noop", reject_new=True)
    assert call(control, "POST", f"/jobs/{job_id}/undo").body["id"] == first.body["id"]


def posted(path: str, **body: Any) -> Answer:
    return call(submit, "POST", path, body=json.dumps(body), headers={"content-type": "application/json"})


def test_retry_after_is_no_longer_than_the_pause(mill: Mill) -> None:
    pause(mill, reject_new=True, until=mill.now() + timedelta(seconds=20))

    assert mill.post().headers["Retry-After"] == "15"


def test_a_pause_without_reject_new_accepts_jobs(mill: Mill) -> None:
    pause(mill)

    assert mill.post().status == 202


def test_while_the_configuration_cannot_be_read_the_pause_holds(
    mill: Mill, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pause(mill)
    first = mill.accepted()
    mill.run()

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(DynamoConfiguration, "read", broken)
    mill.late += 10 * CACHED_FOR
    second = mill.accepted()
    mill.run()

    assert {mill.job(job_id).state for job_id in (first, second)} == {State.PARKED}
    assert ran == []


def test_an_installation_without_settings_pays_a_twentieth_of_a_call_for_a_job_at_most(mill: Mill) -> None:
    jobs = 60
    job_ids = [mill.accepted(job_type="test.noop") for _ in range(jobs)]
    mill.run()

    assert {mill.job(job_id).state for job_id in job_ids} == {State.SUCCEEDED}
    # The job documents were read once each, just above. The clock stands, so all of this is within five seconds.
    assert 1 <= mill.calls["dynamodb.GetItem"] - jobs <= 0.05 * jobs


def test_a_late_message_of_the_parked_job_is_stale(mill: Mill, ran: list[str]) -> None:
    job_id = mill.accepted()
    late = messages.encode(reference_to(mill.job(job_id)))
    pause(mill)
    mill.run()

    assert mill.work(mill.event(late)) == []

    assert (mill.job(job_id).state, ran) == (State.PARKED, [])
