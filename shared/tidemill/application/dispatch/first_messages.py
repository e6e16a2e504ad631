"""Sends the first message for a run at once, so that an urgent job need not wait for the stream.

The submission sends it, or the worker whose run ended so that the job, or its follow-up job, may run at once. It is a
hint, and the stream is the guarantee: publish sends each message, unless a worker has received the hint by then. So a
crash before the send costs the head start, and a duplicate costs a refused claim.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.ports import Clock, Lanes
from tidemill.domain.dispatch.dispatch import Dispatch, message_at_once
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH
from tidemill.names import Lane

#: After a failure, the process sends no hint for this long: each would cost a caller or a run the timeout of the call.
REST: Final = timedelta(seconds=30)


class FirstMessages:
    """For one process. `lanes` sends each message once, within a fraction of a second."""

    def __init__(
        self,
        lanes: Lanes,
        *,
        of: Collection[Lane],
        clock: Clock,
        configuration: CurrentConfiguration,
    ) -> None:
        self._lanes = lanes
        self._of = of
        self._clock = clock
        self._configuration = configuration
        self._rests_until = EPOCH

    def send(self, written: Iterable[Job]) -> str | None:
        """Send the messages of those that may start now. Returns the first error: nothing depends on it.

        `written` are new jobs, or jobs as their last run has settled them.
        """
        now = self._clock()
        if now < self._rests_until:
            return None
        messages = [message for job in written if (message := self._message(job, now))]
        refusals = self._lanes.send(messages) if messages else ()
        if not refusals:
            return None
        self._rests_until = now + REST
        return refusals[0].error

    def _message(self, job: Job, now: datetime) -> Dispatch | None:
        message = message_at_once(job, now=now) if job.lane in self._of else None
        # Publish parks a paused job. A message would only cost a claim.
        return None if message is None or self._configuration().pause_of(job, now=now) else message
