"""Asks after jobs over the HTTP API until each has ended, and no more often than it has to."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from tidemill.cli.api_call import RefusedError, call, path_of
from tidemill.cli.formatting import JobView
from tidemill.cli.output import say
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL
from tidemill.operator.http_client import HttpApi

#: The pause begins short, and doubles for as long as nothing changes.
_SHORTEST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 15.0
#: So many rounds without an answer, some two minutes, and it gives up.
_MOST_FAILURES: Final = 12
_PASSING: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


def watch(
    api: HttpApi, ids: Sequence[str], changed: Callable[[JobView], None], *, pause: Callable[[float], None]
) -> list[JobView]:
    """The jobs as they ended, in the order of `ids`. Calls `changed` for each at first, and whenever one has changed.

    What fails at once is raised, and later only what goes on failing: a job takes its time, and networks do not last.
    """
    seen: dict[str, JobView] = {}
    seconds, failures = _SHORTEST_PAUSE_SECONDS, 0
    while True:
        before = dict(seen)
        try:
            for job_id in [one for one in ids if not _ended(seen.get(one))]:
                seen[job_id], _ = call(api, "GET", path_of(job_id))
                if seen[job_id] != before.get(job_id):
                    changed(seen[job_id])
            failures = 0
        except (RefusedError, StoreUnavailableError) as error:
            failures += 1
            if len(seen) < len(ids) or not _passing(error) or failures == _MOST_FAILURES:
                raise
            say(f"{error}; asking again")
        if all(_ended(seen.get(job_id)) for job_id in ids):
            return [seen[job_id] for job_id in ids]
        seconds = _SHORTEST_PAUSE_SECONDS if seen != before else min(2 * seconds, _LONGEST_PAUSE_SECONDS)
        pause(seconds)


def _ended(job: JobView | None) -> bool:
    return job is not None and job["state"] in TERMINAL


def _passing(error: RefusedError | StoreUnavailableError) -> bool:
    return isinstance(error, StoreUnavailableError) or error.status in _PASSING
