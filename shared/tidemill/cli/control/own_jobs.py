"""Apply one action to several jobs, one request per job: the caller's own over the HTTP API, or those of a tenant."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import Final

from tidemill.cli.api_call import ApiError, call, job_path
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.explain.any_tenant import NoSuchJobError
from tidemill.cli.formatting import JobView, count, state_text, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.output import say, show, show_json
from tidemill.domain.errors import NotAllowedNowError, TidemillError

#: Refusals that concern one job; the next request may succeed.
_JOB_REFUSALS: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
_PAST_PARTICIPLES: Final = {"cancel": "cancelled", "redrive": "redriven"}


def change_own_jobs(installation: Installation, ids: Sequence[str], action: str, *, yes: bool, as_json: bool) -> None:
    """Print each job after the change. `action` is "cancel" or "redrive".

    Raises `CommandError` after the last job if the API refused some of several, and `ApiError` at once if it refuses
    a single job or the caller.
    """

    def change(job_id: str) -> JobView:
        job: JobView = call(installation.api, "POST", f"{job_path(job_id)}/{action}")[0]
        return job

    change_jobs(ids, action, change, yes=yes, as_json=as_json)


def change_jobs(
    ids: Sequence[str],
    action: str,
    change: Callable[[str], JobView],
    *,
    yes: bool,
    as_json: bool,
    recorded: AbstractContextManager[None] | None = None,
) -> None:
    """Change jobs one by one. `change` returns the job after the change. All changes are made within `recorded`."""
    unique_ids = list(dict.fromkeys(ids))
    require_confirmation(yes=yes)
    if not confirmed(f"{action.capitalize()} {count(len(unique_ids), 'job')}?", yes=yes):
        return
    with recorded or nullcontext():
        _change_each(unique_ids, action, change, as_json=as_json)


def _change_each(unique_ids: Sequence[str], action: str, change: Callable[[str], JobView], *, as_json: bool) -> None:
    refused = 0
    for job_id in unique_ids:
        try:
            job = change(job_id)
        except (ApiError, NoSuchJobError, NotAllowedNowError) as error:
            if len(unique_ids) == 1 or not _concerns_one_job(error):
                raise
            refused += 1
            say(visible_lines(f"{job_id}  {error}"))
        else:
            if as_json:
                show_json(job, one_line=True)
            else:
                show(f"{visible(job['id'])}  {state_text(job)}")
    if refused:
        raise CommandError(f"{refused} of {count(len(unique_ids), 'job')} could not be {_PAST_PARTICIPLES[action]}")


def _concerns_one_job(error: TidemillError) -> bool:
    return not isinstance(error, ApiError) or error.status in _JOB_REFUSALS
