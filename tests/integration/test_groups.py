"""Groups through the functions: the order holds for all jobs and workers, and a faulty group harms no other."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import SETTLEMENTS
from tests.support.deployed_functions import TENANT, Event, Mill, forget
from tests.support.patience import PATIENCE_SECONDS
from tidemill import composition
from tidemill.application.attempt.run import Run
from tidemill.application.dispatch.owed import PATIENCE
from tidemill.application.submission.job_ids import follow_up_id
from tidemill.domain.attempt.return_values import Continue, Done, GiveUp, Snooze
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import PermanentJobError, RetryAfter
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.names import Env
from tidemill.sqs import messages

LEASE = timedelta(milliseconds=300)


class Parcels:
    """Jobs of groups, and the runs of them that began: which job of which group, at which attempt."""

    def __init__(self, mill: Mill) -> None:
        self.mill = mill
        self.begun: list[tuple[str, int, int]] = []
        #: By group and number, what a run does beyond being noted.
        self.acts: dict[tuple[str, int], Any] = {}
        mill.script.handler = self._run

    def submit(
        self, count: int, *, group: str = "ada", first: int = 0, kind: str = "scripted", **more: Any
    ) -> list[str]:
        ids = []
        for number in range(first, first + count):
            body = {"type": f"test.{kind}", "group": group, "payload": {"n": number}, **more}
            answer = self.mill.post_text(json.dumps(body))
            assert answer.status == 202, answer
            ids.append(str(answer.body["id"]))
        return ids

    def states(self, ids: list[str]) -> list[State]:
        return [self.mill.job(job_id).state for job_id in ids]

    def order(self, group: str = "ada") -> list[int]:
        """The jobs of a group in the order in which they first ran."""
        return list(dict.fromkeys(number for name, number, _ in self.begun if name == group))

    def run_until_ended(self, ids: list[str]) -> None:
        waiting, deadline = set(ids), time.monotonic() + PATIENCE_SECONDS
        while waiting := {job_id for job_id in waiting if not self.mill.job(job_id).state.terminal}:
            assert time.monotonic() < deadline, self.states(ids)
            # Play as many batches as all of them need, and none for a job that never ends.
            for _ in range(0, len(waiting), 10):
                assert self.mill.publish() == []
                if (event := self.mill.receive())["Records"]:
                    self.mill.work(event)
            time.sleep(0.01)

    def _run(self, payload: Any, run: Run) -> Any:
        assert run.group is not None
        self.begun.append((run.group, payload.n, run.attempt))
        act = self.acts.get((run.group, payload.n))
        return act(run) if act else payload.n


@pytest.fixture(params=["following", "not following"])
def parcels(mill: Mill, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parcels]:
    """With workers that go on to the next of a group themselves, and with workers that leave it to its message."""
    monkeypatch.setenv(Env.FOLLOW_GROUPS, str(request.param == "following").lower())
    forget()
    yield Parcels(mill)
    forget()


def test_jobs_of_a_group_run_one_after_another_in_the_order_accepted(parcels: Parcels) -> None:
    ids = parcels.submit(6)

    parcels.run_until_ended(ids)

    assert parcels.states(ids) == [State.SUCCEEDED] * 6
    assert parcels.begun == [("ada", number, 1) for number in range(6)]


def test_a_submission_behind_others_answers_that_it_waits(parcels: Parcels) -> None:
    parcels.submit(1)

    answer = parcels.mill.post_text(json.dumps({"type": "test.noop", "group": "ada"}))

    assert (answer.status, answer.body["state"], answer.body["group"]) == (202, "waiting", "ada")


def test_the_order_holds_through_retries_snoozes_and_continuations(parcels: Parcels) -> None:
    def fail_twice(run: Run) -> str:
        if run.attempt < 3:
            raise RetryAfter(0, "not yet")
        return "at last"

    slept: list[Run] = []

    def snooze_once(run: Run) -> Any:
        slept.append(run)
        return Snooze(timedelta(seconds=0.2)) if len(slept) == 1 else None

    parcels.acts |= {
        ("ada", 1): fail_twice,
        ("ada", 2): snooze_once,
        ("ada", 3): lambda run: None if run.resumed_from else Continue(checkpoint="half"),
    }
    ids = parcels.submit(5)

    parcels.run_until_ended(ids)

    assert parcels.states(ids) == [State.SUCCEEDED] * 5
    assert [number for _, number, _ in parcels.begun] == [0, 1, 1, 1, 2, 2, 3, 3, 4]


def test_the_order_holds_when_every_message_and_record_is_delivered_twice(parcels: Parcels) -> None:
    mill = parcels.mill
    ids = parcels.submit(4)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all(state.terminal for state in parcels.states(ids)):
        mill.publish(mill.records())
        assert mill.publish(mill.records()) == []
        if (event := mill.receive())["Records"]:
            mill.work(event)
            mill.work(event)
        assert time.monotonic() < deadline

    assert parcels.begun == [("ada", number, 1) for number in range(4)]


def test_a_delayed_job_delays_the_jobs_behind_it(parcels: Parcels) -> None:
    early = parcels.submit(1)
    late = parcels.submit(1, first=1, delay_seconds=1)
    rest = parcels.submit(1, first=2)
    asked_for = parcels.mill.job(late[0]).run_at

    parcels.run_until_ended([*early, *late, *rest])

    assert parcels.order() == [0, 1, 2]
    claimed_at = parcels.mill.job(late[0]).lease.claimed_at
    assert claimed_at
    assert asked_for
    assert claimed_at >= asked_for


def test_a_killed_worker_blocks_its_group_until_its_lease_expires(parcels: Parcels) -> None:
    mill, store = parcels.mill, composition.parts().store
    ids = parcels.submit(3)
    mill.publish()
    mill.stop_clock()
    event, now = mill.receive(), mill.now()
    store.claim(_reference(event), token="a worker that is no more", now=now, lease_end=now + LEASE)

    mill.work(event)
    assert parcels.begun == []
    assert parcels.states(ids) == [State.RUNNING, State.WAITING, State.WAITING]
    mill.late += LEASE
    parcels.run_until_ended(ids)

    assert parcels.begun == [("ada", 0, 2), ("ada", 1, 1), ("ada", 2, 1)]


def test_the_stream_advances_a_group_whose_worker_was_killed_after_its_settle(parcels: Parcels) -> None:
    mill, store = parcels.mill, composition.parts().store
    ids = parcels.submit(2)
    mill.publish()
    event, now = mill.receive(), mill.now()
    job = store.claim(_reference(event), token="a worker that is no more", now=now, lease_end=now + LEASE)
    store.settle(job, SETTLEMENTS[State.SUCCEEDED], now=now)
    assert parcels.states(ids) == [State.SUCCEEDED, State.WAITING]

    mill.publish()

    assert parcels.states(ids) == [State.SUCCEEDED, State.QUEUED]
    parcels.run_until_ended(ids)
    assert parcels.begun == [("ada", 1, 1)]


def test_a_group_skips_a_dead_job_and_a_redriven_one_comes_last(parcels: Parcels) -> None:
    parcels.acts["ada", 1] = _fail
    ids = parcels.submit(4)
    parcels.run_until_ended(ids)
    assert parcels.states(ids) == [State.SUCCEEDED, State.DEAD, State.SUCCEEDED, State.SUCCEEDED]

    del parcels.acts["ada", 1]
    more = parcels.submit(2, first=4)
    dead = parcels.mill.job(ids[1])
    composition.parts().store.redrive(dead, token="a redrive", now=parcels.mill.now(), by="ada")
    assert parcels.mill.job(ids[1]).state is State.WAITING
    parcels.run_until_ended([*ids, *more])

    assert [number for _, number, _ in parcels.begun] == [0, 1, 2, 3, 4, 5, 1]


def test_a_blocked_group_waits_until_its_dead_job_is_redriven(parcels: Parcels) -> None:
    parcels.acts["ada", 1] = lambda _run: GiveUp("the depot is closed")
    ids = parcels.submit(4, kind="blocking")
    parcels.mill.run()
    parcels.mill.run()
    assert parcels.states(ids) == [State.SUCCEEDED, State.DEAD, State.WAITING, State.WAITING]

    del parcels.acts["ada", 1]
    composition.parts().store.redrive(parcels.mill.job(ids[1]), token="a redrive", now=parcels.mill.now(), by="ada")
    parcels.run_until_ended(ids)

    assert [number for _, number, _ in parcels.begun] == [0, 1, 1, 2, 3]


def test_a_blocked_group_advances_when_its_dead_job_is_cancelled(parcels: Parcels) -> None:
    parcels.acts["ada", 0] = lambda _run: GiveUp("the depot is closed")
    ids = parcels.submit(3, kind="blocking")
    parcels.mill.run()

    composition.parts().store.cancel(parcels.mill.job(ids[0]), now=parcels.mill.now())
    parcels.run_until_ended(ids)

    assert parcels.states(ids) == [State.CANCELLED, State.SUCCEEDED, State.SUCCEEDED]


@pytest.mark.parametrize("numbers", [[0], [1], [0, 1], [1, 2, 3], [0, 1, 2, 3]], ids=str)
def test_a_group_skips_cancelled_jobs(parcels: Parcels, numbers: list[int]) -> None:
    ids = parcels.submit(4)

    for number in numbers:
        composition.parts().store.cancel(parcels.mill.job(ids[number]), now=parcels.mill.now())
    parcels.run_until_ended(ids)
    parcels.mill.run()

    assert parcels.order() == [number for number in range(4) if number not in numbers]
    assert parcels.states(parcels.submit(1)) == [State.QUEUED]


def test_follow_up_jobs_of_the_same_group_run_after_the_waiting_jobs(parcels: Parcels) -> None:
    then = [Submission(type="test.scripted", payload={"n": number}, group="ada") for number in (8, 9)]
    parcels.acts["ada", 0] = lambda _run: Done(then=then)
    ids = parcels.submit(2)

    parcels.run_until_ended(ids)
    parcels.run_until_ended([follow_up_id(parcels.mill.job(ids[0]), index) for index in range(2)])

    assert parcels.order() == [0, 1, 8, 9]


def test_an_unreadable_job_behind_a_head_delays_only_its_group_and_is_reported(
    parcels: Parcels, caplog: pytest.LogCaptureFixture
) -> None:
    mill = parcels.mill
    ids = parcels.submit(2)
    mill.table.client.update_item(
        TableName=mill.table.name,
        Key={"pk": {"S": f"{TENANT}#{ids[1]}"}},
        UpdateExpression="SET #state = :nonsense",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":nonsense": {"S": "nonsense"}},
    )
    mill.publish()
    assert mill.work(mill.receive()) == []
    innocent = parcels.submit(1, group="another")

    (end, submission) = mill.records()
    assert mill.publish([end, submission]) == []
    mill.work(mill.receive())
    assert parcels.states(innocent) == [State.SUCCEEDED]

    mill.wake()
    assert "owed work overdue" not in [record.message for record in caplog.records]
    mill.late += PATIENCE
    mill.wake()
    assert "owed work overdue" in [record.message for record in caplog.records]


#: moto copies all its tables for each transaction, so there are few.
GROUPS = 12
MEMBERS = 3


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["dies and blocks", "dies", "never ends"])
def test_a_faulty_group_harms_no_other_group(mill: Mill, poison: str) -> None:
    """`make figures FIGURE=groups` does so with a thousand, through the deployed app."""
    parcels = Parcels(mill)
    act, kind, came_to = POISONS[poison]
    parcels.acts["group 7", 0] = act
    poisoned: list[str] = []
    innocent: list[str] = []
    for number in range(MEMBERS):
        for group in range(GROUPS):
            if group == 7:
                poisoned += parcels.submit(1, group="group 7", first=number, kind=kind)
            else:
                innocent += parcels.submit(1, group=f"group {group}", first=number)

    parcels.run_until_ended(innocent)

    assert all(parcels.order(f"group {group}") == [0, 1, 2] for group in range(GROUPS) if group != 7)
    assert {(mill.job(job_id).state, mill.job(job_id).attempt) for job_id in innocent} == {(State.SUCCEEDED, 1)}
    assert parcels.states(poisoned)[1:] == [came_to] * (MEMBERS - 1)


def _fail(_run: Run) -> None:
    raise PermanentJobError("no such parcel")


#: What the first job of the bad group does, its type, and what those behind it have come to when all others have ended.
POISONS: dict[str, tuple[Callable[[Run], Any], str, State]] = {
    "dies and blocks": (_fail, "blocking", State.WAITING),
    "dies": (_fail, "scripted", State.SUCCEEDED),
    "never ends": (lambda _run: Snooze(timedelta(seconds=0.1)), "scripted", State.WAITING),
}


def _reference(event: Event) -> Reference:
    """Return the reference of the first message."""
    body = messages.decode(event["Records"][0]["body"])
    assert isinstance(body, Reference)
    return body
