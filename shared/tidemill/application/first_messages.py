"""Sends the first message of a new job at once, so that an urgent job need not wait for the stream.

It is a hint, and the stream is the guarantee: publish sends the message of each new job, unless a worker has received
the hint by then. So a crash before the send costs the head start, and a duplicate costs a refused claim.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.ports import Clock, Lanes
from tidemill.application.submit import Accepted
from tidemill.domain.dispatch import Dispatch, first_message
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH
from tidemill.names import Lane

#: After a failure, callers wait for no further hint for this long: each would cost them the timeout of the call.
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

    def send(self, accepted: Iterable[Accepted]) -> str | None:
        """Send the messages of the new jobs that may start now. Returns the first error: nothing depends on it."""
        now = self._clock()
        if now < self._rests_until:
            return None
        jobs = [each.job for each in accepted if not each.replayed and each.job.lane in self._of]
        messages = [message for job in jobs if (message := self._message(job, now))]
        refusals = self._lanes.send(messages) if messages else ()
        if not refusals:
            return None
        self._rests_until = now + REST
        return refusals[0].error

    def _message(self, job: Job, now: datetime) -> Dispatch | None:
        # Publish parks a paused job. A message would only cost a claim.
        if self._configuration().pause_of(job, now=now):
            return None
        return first_message(job, now=now)
