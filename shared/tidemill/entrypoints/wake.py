"""Wake: the scheduler calls it each minute, several times at once. Each call does its part.

It does owed work, and queues parked jobs whose turn has come and scheduled jobs that are due soon.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tidemill.application.ports import WHOLE, Part
from tidemill.application.waiting.wake import OWED_TIME, RELEASE_TIME, WAKE_RESERVE
from tidemill.composition import parts
from tidemill.domain.errors import StoreUnavailableError
from tidemill.names import WAKE_PART, WAKE_PARTS
from tidemill.system import random_draw
from tidemill.worker.message_run import Invocation, time_left


def handle(event: Mapping[str, Any] | None, context: Invocation) -> None:
    """An operator may call it without an event: it then does the work of all parts."""
    part = Part(int(event[WAKE_PART]), int(event[WAKE_PARTS])) if event else WHOLE
    telemetry = parts().telemetry()
    ends_at = time_left(context) - OWED_TIME
    telemetry.owed_result(parts().owed_runner.run_pending(lambda: time_left(context) > ends_at, part=part))
    telemetry.flush()
    ends_at = max(time_left(context) - RELEASE_TIME, WAKE_RESERVE)
    telemetry.released(
        parts().releaser.release_all(part=part, in_time=lambda: time_left(context) > ends_at, draw=random_draw.draw)
    )
    telemetry.flush()
    if part.number == 0 and (governor := parts().governor) and not governor.off:
        # No start lowers the level if nothing urgent starts. Else the next call does it.
        with suppress(StoreUnavailableError):
            telemetry.governed(governor.settle())
    telemetry.woken(parts().waker.wake(time_left=time_left(context), part=part))
    telemetry.flush()
