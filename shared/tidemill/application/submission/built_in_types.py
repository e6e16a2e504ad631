"""The built-in types that no caller submits as a job: the engine checks what is in them, or an operator chooses it."""

from typing import Final

from msgspec import Struct

from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.submission.submission import Submission
from tidemill.names import (
    BATCH_TYPE,
    EVENT_TYPE,
    FLOW_TYPE,
    MIGRATION_TENANT,
    MIGRATION_TYPE,
    REPLAY_TENANT,
    REPLAY_TYPE,
)


class _BuiltIn(Struct, frozen=True, kw_only=True):
    #: What a caller does instead.
    advice: str
    #: The command of an operator submits it, for this tenant, which cannot equal a caller's. None: the engine does.
    tenant: str | None = None


_BUILT_IN: Final = {
    EVENT_TYPE: _BuiltIn(advice="publish the event instead"),
    BATCH_TYPE: _BuiltIn(advice="open a batch instead"),
    FLOW_TYPE: _BuiltIn(advice="start a flow instead"),
    MIGRATION_TYPE: _BuiltIn(advice="operators run `tidemill migrate` instead", tenant=MIGRATION_TENANT),
    REPLAY_TYPE: _BuiltIn(advice="operators run `tidemill replay` instead", tenant=REPLAY_TENANT),
}


def require_submittable(submission: Submission, *, tenant: str) -> None:
    """Raises `InvalidPayloadError`."""
    built_in = _BUILT_IN.get(submission.type)
    if built_in and submission.carries != submission.type and tenant != built_in.tenant:
        raise InvalidPayloadError([Fault("/type", built_in.advice)])
