"""Polls jobs over the HTTP API until each has ended, with growing pauses while nothing changes."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from tidemill.aws.http_client import HttpApi
from tidemill.cli.api_call import ApiError, call, job_path
from tidemill.cli.formatting import JobView
from tidemill.cli.output import say
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL

#: The pause starts here, and doubles while nothing changes.
_MIN_PAUSE_SECONDS: Final = 0.5
#: The longest pause of a quiet time, so that a job that reports progress again is drawn within seconds; and the longest
#: pause while rounds fail.
_MAX_PAUSE_SECONDS: Final = 3.0
_MAX_FAILED_PAUSE_SECONDS: Final = 15.0
#: Give up after this many failed rounds in a row, which take about two minutes.
_MAX_FAILURES: Final = 12
_TRANSIENT: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


def poll_until_ended(
    api: HttpApi, ids: Sequence[str], on_change: Callable[[JobView], None], *, pause: Callable[[float], None]
) -> list[JobView]:
    """The ended jobs, in the order of `ids`. Calls `on_change` for the first answer and for each change.

    An error in the first round is raised. Later, transient errors are retried: jobs take time, and networks fail.
    """
    latest: dict[str, JobView] = {}
    seconds, failures = _MIN_PAUSE_SECONDS, 0
    while True:
        before = dict(latest)
        try:
            for job_id in [one for one in ids if not _ended(latest.get(one))]:
                latest[job_id], _ = call(api, "GET", job_path(job_id))
                if latest[job_id] != before.get(job_id):
                    on_change(latest[job_id])
            failures = 0
        except (ApiError, StoreUnavailableError) as error:
            failures += 1
            if len(latest) < len(ids) or not _transient(error) or failures == _MAX_FAILURES:
                raise
            say(f"{error}; retrying")
        if all(_ended(latest.get(job_id)) for job_id in ids):
            return [latest[job_id] for job_id in ids]
        longest = _MAX_FAILED_PAUSE_SECONDS if failures else _MAX_PAUSE_SECONDS
        seconds = _MIN_PAUSE_SECONDS if latest != before else min(2 * seconds, longest)
        pause(seconds)


def _ended(job: JobView | None) -> bool:
    return job is not None and job["state"] in TERMINAL


def _transient(error: ApiError | StoreUnavailableError) -> bool:
    return isinstance(error, StoreUnavailableError) or error.status in _TRANSIENT
