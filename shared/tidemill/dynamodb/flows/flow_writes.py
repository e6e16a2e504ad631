"""The writes to the document of a flow as DynamoDB requests. Pure. Each clause has a comment with its race."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.flows.flow_place import Mark
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.signal_answers import waits_for_signal
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import (
    ADDITIONS_ATTRIBUTE,
    FLOW_ATTRIBUTE,
    LOOKS_ATTRIBUTE,
    SCHEMA_ATTRIBUTE,
    SCHEMA_VERSION,
    key,
)
from tidemill.dynamodb.update_requests import ATTENTION, Request, update, update_job
from tidemill.dynamodb.waiting.signal_writes import NAMES, as_read, values_as_read

_LOOKS: Final = f"#{LOOKS_ATTRIBUTE} = if_not_exists(#{LOOKS_ATTRIBUTE}, :zero) + :one"
_ONE_MORE: Final = {":zero": number(0), ":one": number(1)}


def look(flow: Job, *, now: datetime, condition: str = "", values: Mapping[str, Item] | None = None) -> Request:
    """Queue a flow that waits. Or let its run, which may have looked before, not settle as it wants to.

    `condition` is one more, on the attribute `additions`, which is counted then.
    """
    counts, names = [_LOOKS], [*NAMES, LOOKS_ATTRIBUTE]
    conditions, values = as_read(flow), values_as_read(flow) | _ONE_MORE | dict(values or {})
    if condition:
        counts.append(f"#{ADDITIONS_ATTRIBUTE} = if_not_exists(#{ADDITIONS_ATTRIBUTE}, :zero) + :one")
        names.append(ADDITIONS_ATTRIBUTE)
        conditions.append(condition)
    if waits_for_signal(flow):
        return update_job(
            flow.tenant,
            flow.id,
            sets={"state": text(State.QUEUED), "due": milliseconds(now)},
            removes=["wait", *ATTENTION],
            entries=[Transition(at=now, state=State.QUEUED, cause=Why.LOOK)],
            # A new generation: a message for the end of the wait may have been sent, and stays stale.
            expressions=["#generation = #generation + :one", *counts],
            conditions=conditions,
            names=names,
            values=values,
        )
    # It keeps the schema number and leaves the history alone, as a cancel request does.
    return update(
        key(flow.tenant, flow.id),
        sets={},
        expressions=counts,
        conditions=[
            *conditions,
            # A newer version may have written the document, as for every other write.
            f"#{SCHEMA_ATTRIBUTE} <= :schema",
        ],
        names=[*names, SCHEMA_ATTRIBUTE],
        values=values | {":schema": number(SCHEMA_VERSION)},
    )


def count_addition(flow: Job, *, now: datetime) -> Request:
    """With the request to look, since nothing else starts the nodes that were added."""
    if flow.flow_state.additions:
        # Others added nodes since it was read: the checks of the new ones have not seen them, and the number is taken.
        return look(
            flow,
            now=now,
            condition=f"#{ADDITIONS_ATTRIBUTE} = :known",
            values={":known": number(flow.flow_state.additions)},
        )
    # Another request may have made the first addition since it was read.
    return look(flow, now=now, condition=f"attribute_not_exists(#{ADDITIONS_ATTRIBUTE})")


def no_look_since(flow: Job, settlement: Settlement) -> Clause:
    """The condition of a settlement that rests on what the run of the flow has seen of its nodes.

    Since the claim, a node has ended or was added, perhaps after the run looked at it.
    """
    if not settlement.rests_on_look:
        return NO_CLAUSE
    names = [LOOKS_ATTRIBUTE]
    if flow.flow_state.looks:
        values = {":looks_known": number(flow.flow_state.looks)}
        return Clause(conditions=[f"#{LOOKS_ATTRIBUTE} = :looks_known"], names=names, values=values)
    return Clause(conditions=[f"attribute_not_exists(#{LOOKS_ATTRIBUTE})"], names=names)


def replaces_blocked(node: Job) -> Clause:
    """A node that starts or is skipped after all may replace its document that only says that it was blocked."""
    if node.flow is None or node.flow.mark is Mark.BLOCKED:
        return NO_CLAUSE
    return Clause(
        # Its parents did not let it start.
        conditions=[f"#{FLOW_ATTRIBUTE}.#mark = :blocked"],
        names=[FLOW_ATTRIBUTE, "mark"],
        values={":blocked": text(Mark.BLOCKED)},
    )
