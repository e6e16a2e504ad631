"""The writes of signals as DynamoDB requests. Pure. Each clause has a comment with its race."""

from typing import Final

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.history import Transition
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import CAME, Signal
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import (
    AWAITED,
    SCHEMA_ATTRIBUTE,
    SCHEMA_VERSION,
    SIGNALS,
    SIGNALS_ATTRIBUTE,
    WAIT,
    key,
)
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.update_requests import ATTENTION, Request, update, update_job

_KNOWN: Final = ":signals_known"


def keep(job: Job, signal: Signal) -> Request:
    """Add the signal to the document. As a cancel request, it keeps the schema number and leaves the history alone."""
    return update(
        key(job.tenant, job.id),
        sets={SIGNALS_ATTRIBUTE: SIGNALS.encode((*job.signals.received, signal))},
        conditions=[
            *as_read(job),
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
        ],
        names=[*NAMES, SCHEMA_ATTRIBUTE],
        values={**values_as_read(job), ":schema": number(SCHEMA_VERSION)},
    )


def wakes(job: Job, signal: Signal) -> Request:
    """Add the signal for which the job waits, and queue it."""
    return update_job(
        job.tenant,
        job.id,
        sets={
            SIGNALS_ATTRIBUTE: SIGNALS.encode((*job.signals.received, signal)),
            "state": text(State.QUEUED),
            "due": milliseconds(signal.at),
        },
        removes=["wait", *ATTENTION],
        entries=[Transition(at=signal.at, state=State.QUEUED, cause=CAME + signal.name)],
        # A new generation: a message for the end of the wait may have been sent, and stays stale.
        expressions=["#generation = #generation + :one"],
        conditions=as_read(job),
        names=NAMES,
        values={**values_as_read(job), ":one": number(1)},
    )


def wait_for_signal(job: Job, settlement: Settlement, indexes: Indexes) -> Clause:
    """The attributes of `Settlement.awaited`, and of the wait that it begins."""
    if settlement.awaited is None:
        return NO_CLAUSE
    sets = {"awaited": AWAITED.encode(settlement.awaited)}
    if settlement.wait:
        sets["wait"] = WAIT.encode(settlement.wait)
    if settlement.signals is not None:
        sets[SIGNALS_ATTRIBUTE] = SIGNALS.encode(settlement.signals)
    if settlement.state is State.PARKED:
        # A job that waits alone is beside the scheduled jobs, so that wake finds it at the end of its wait.
        sets |= indexes.attention(State.SCHEDULED, job.id, settlement.awaited.until)
    return Clause(sets=sets)


def no_signal_since(settlement: Settlement) -> Clause:
    """The condition of a settlement that rests on the signals at the claim."""
    if settlement.signals_known is None:
        return NO_CLAUSE
    return Clause(
        # A signal came since the claim, perhaps the one to wait for.
        conditions=[no_more_signals(settlement.signals_known)],
        names=[SIGNALS_ATTRIBUTE],
        values=signals_known(settlement.signals_known),
    )


def no_more_signals(known: int) -> str:
    """A condition that holds if the document has no more signals than were known. See `signals_known`."""
    return f"size(#{SIGNALS_ATTRIBUTE}) = {_KNOWN}" if known else f"attribute_not_exists(#{SIGNALS_ATTRIBUTE})"


def signals_known(known: int) -> dict[str, Item]:
    """The values of `no_more_signals`."""
    return {_KNOWN: number(known)} if known else {}


NAMES: Final = (SIGNALS_ATTRIBUTE, "state", "generation", "created_at")


def as_read(job: Job) -> list[str]:
    return [
        # Two signals at once: each adds to what the other has written.
        no_more_signals(len(job.signals.received)),
        # Since it was read, the job was claimed, settled, woken or cancelled, so another answer may be right.
        "#state = :state",
        # It ran, and waits again.
        "#generation = :generation",
        # It expired, and a new job replaced it, whose generations begin again at 1.
        "#created_at = :created_at",
    ]


def values_as_read(job: Job) -> dict[str, Item]:
    return {
        **signals_known(len(job.signals.received)),
        ":state": text(job.state),
        ":generation": number(job.generation),
        ":created_at": milliseconds(job.created_at),
    }
