"""Report what your users feel, such as the response time of a web server, so that the governor can act on it.

foreground = ForegroundLatency("the-jobs-table", client=boto3.client("dynamodb"), target_seconds=0.5)
foreground.report(seconds)

This module does not import aws-lambda-powertools.
"""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tidemill.application.admission.foreground import Foreground, Governor
from tidemill.application.configuration import CachedConfiguration
from tidemill.domain import option_values
from tidemill.domain.admission.governor import Governed
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.system import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_LONGEST_SECONDS: Final = LONGEST_SPAN.total_seconds()
_LOGGER: Final = logging.getLogger(__name__)


class ForegroundLatency:
    """The latency of one foreground, against its own target. Threads may share one; keep it as long as the process.

    It acts in a stage with `foreground_target_seconds`. It needs `dynamodb:GetItem` and `dynamodb:UpdateItem`.
    """

    def __init__(self, table: str, *, client: "DynamoDBClient", target_seconds: float) -> None:
        """`table` is the stack's output JobsTable. Raises `ValueError` for a target that is not above 0 or too long."""
        if not 0 < option_values.number("target_seconds", target_seconds) <= _LONGEST_SECONDS:
            raise ValueError(f"target_seconds {target_seconds} must be above 0 and at most {_LONGEST_SECONDS:g}")
        configuration = CachedConfiguration(
            DynamoConfiguration(client, table=table).read, clock=clock.now, failed=_not_read
        )
        governor = Governor(
            DynamoGovernor(client, table=table),
            clock=clock.now,
            configuration=configuration.current,
            changed=_changed,
        )
        self._foreground = Foreground(governor, target=timedelta(seconds=target_seconds), clock=clock.now)

    def report(self, seconds: float) -> None:
        """One user waited for so long. It counts as the start of an urgent job, late if it is above the target.

        Reads twice in five seconds at most, and writes once a second at most, only while users wait too long or the
        governor's level is above 0. A store that does not respond raises nothing. Raises `ValueError` for a time below
        0 or above 366 days.
        """
        if not 0 <= option_values.number("seconds", seconds) <= _LONGEST_SECONDS:
            raise ValueError(f"seconds {seconds} must be 0 or more, and at most {_LONGEST_SECONDS:g}")
        self._foreground.waited(timedelta(seconds=seconds))


def _changed(before: Governed, after: Governed) -> None:
    """One line for each change of the level, with the counts that led to it."""
    line = "strain changed from %d to %d: %d of %d were late"
    _LOGGER.warning(line, before.level, after.level, before.starts.late, before.starts.total)


def _not_read(error: Exception) -> None:
    _LOGGER.warning("runtime configuration not read: %s", error)
