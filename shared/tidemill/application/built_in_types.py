"""The built-in types that no caller submits as a job: the engine checks what is in them, or an operator chooses it."""

from dataclasses import dataclass
from typing import Final

from tidemill.domain.batches import Opening
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.events import Publication
from tidemill.domain.flows import FlowStart
from tidemill.domain.submission import Submission
from tidemill.names import (
    BATCH_TYPE,
    EVENT_TYPE,
    FLOW_TYPE,
    MIGRATION_TENANT,
    MIGRATION_TYPE,
    REPLAY_TENANT,
    REPLAY_TYPE,
)


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """Who submits the type, and what a caller does instead."""

    advice: str
    #: The engine, in this form: its members have been checked.
    form: type[Submission] | tuple[()] = ()
    #: The command of an operator. It cannot equal a caller's tenant.
    tenant: str | None = None


_BUILT_IN: Final = {
    EVENT_TYPE: _BuiltIn("publish the event instead", form=Publication),
    BATCH_TYPE: _BuiltIn("open a batch instead", form=Opening),
    FLOW_TYPE: _BuiltIn("start a flow instead", form=FlowStart),
    MIGRATION_TYPE: _BuiltIn("operators run `tidemill migrate` instead", tenant=MIGRATION_TENANT),
    REPLAY_TYPE: _BuiltIn("operators run `tidemill replay` instead", tenant=REPLAY_TENANT),
}


def require_submittable(submission: Submission, *, tenant: str) -> None:
    """Raises `InvalidPayloadError`."""
    built_in = _BUILT_IN.get(submission.type)
    if built_in and not isinstance(submission, built_in.form) and tenant != built_in.tenant:
        raise InvalidPayloadError([Fault("/type", built_in.advice)])
