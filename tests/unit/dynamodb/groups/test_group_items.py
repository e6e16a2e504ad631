"""The order of a group: which job is at its head, and what a job gets when its turn comes."""

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.groups.group_items import Head, Order, Tail, become_head
from tidemill.dynamodb.history_entries import transitions
from tidemill.dynamodb.indexes import Indexes

LATER = NOW + 1000 * SECOND
INDEXES = Indexes(shards=1)


def joined(order: Order, count: int) -> tuple[Order, list[Job]]:
    placed = []
    for _ in range(count):
        order, job = order.joined_by(a_job(group="g"))
        placed.append(job)
    return order, placed


@pytest.mark.parametrize("sequence", [0, 7])
def test_the_first_job_of_an_idle_group_leads_it_and_those_of_the_same_transaction_wait(sequence: int) -> None:
    order, (first, second, third) = joined(Order(Head(tenant="t", group="g", sequence=sequence), None), 3)

    assert [job.group.sequence for job in (first, second, third)] == [sequence + 1, sequence + 2, sequence + 3]
    assert [(job.state, job.due) for job in (first, second, third)] == [
        (State.QUEUED, NOW),
        (State.WAITING, None),
        (State.WAITING, None),
    ]
    assert order.head == Head(tenant="t", group="g", sequence=sequence + 1, job_id=first.id, idle=False)
    assert order.tail == Tail(tenant="t", group="g", sequence=sequence + 3)
    assert [order.head.leads(job) for job in (first, second)] == [True, False]


def test_a_job_waits_behind_the_last_one_without_a_look_at_the_head() -> None:
    order, (job,) = joined(Order(None, Tail(tenant="t", group="g", sequence=4, version="1")), 1)

    assert (job.group.sequence, job.state) == (5, State.WAITING)
    assert order == Order(None, Tail(tenant="t", group="g", sequence=5, version="1"))


def test_the_first_job_behind_a_head_makes_the_tail() -> None:
    head = Head(tenant="t", group="g", sequence=3, job_id="a", idle=False, version="1")

    order, (job,) = joined(Order(head, None), 1)

    assert (job.group.sequence, job.state) == (4, State.WAITING)
    assert order == Order(head, Tail(tenant="t", group="g", sequence=4)), "both are written"


def test_a_head_leads_no_job_of_another_place() -> None:
    head = Head(tenant="t", group="g", sequence=3, job_id="a", idle=False)
    job = a_job(id="a", group="g", sequence=3)

    assert head.leads(job)
    assert not any(
        head.leads(other)
        for other in (replace(job, id="b"), with_changes(job, sequence=4), with_changes(job, group="h"))
    )


TURN = Transition(at=NOW, state=State.QUEUED, cause=Why.TURN)


@pytest.mark.parametrize(
    ("state", "indexed"),
    [(State.QUEUED, None), (State.SCHEDULED, ("scheduled#0", f"{round(LATER.timestamp() * 1000)}"))],
)
def test_a_job_whose_turn_comes_is_queued_or_listed_for_its_time(state: State, indexed: tuple[str, str] | None) -> None:
    earlier = Transition(at=NOW - SECOND, state=State.WAITING, cause=Why.ACCEPTED)
    job = a_job(group="g", sequence=2, state=state, due=LATER, history=(earlier, replace(TURN, state=state)))

    values = become_head(job, indexes=INDEXES)["ExpressionAttributeValues"]

    assert values[":new_state"] == {"S": state}
    assert values[":new_due"] == {"N": f"{round(LATER.timestamp() * 1000)}"}
    assert transitions(values[":entries"]) == (replace(TURN, state=state),), "the earlier ones are there"
    found = (values[":new_attention"]["S"], values[":new_attention_at"]["N"]) if ":new_attention" in values else None
    assert found == indexed


def test_an_order_without_a_head_and_a_tail_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="an order has a head or a tail"):
        joined(Order(None, None), 1)
