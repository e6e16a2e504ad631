"""The burst that a debounced submission begins, if no job of an earlier one takes it."""

import json
from datetime import datetime
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.application.submission_body import hash_of
from tidemill.domain.burst import Burst
from tidemill.domain.debounce import longest, quiet_after
from tidemill.domain.submission import Submission

_NAMES: Final = uuid5(NAMESPACE_OID, "tidemill.burst")


def burst_of(submission: Submission, payload: Any, *, tenant: str, now: datetime) -> Burst | None:
    """None if the submission is not debounced."""
    debounce, key = submission.debounce, submission.debounce_key
    if debounce is None:
        return None
    by = ["key", key] if key is not None else ["payload", hash_of(payload)]
    return Burst(
        # The same for all submissions that may become one job.
        name=str(uuid5(_NAMES, json.dumps([tenant, submission.type, *by]))),
        key=key,
        until=quiet_after(now, submission.debounce_max or longest(debounce)),
        sent_for=quiet_after(now, debounce),
        last="",
        replaces=submission.replace is not None,
    )
