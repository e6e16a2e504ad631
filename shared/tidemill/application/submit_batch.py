"""Submit many jobs at once: the writes run in parallel, and each submission has its own answer."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidemill.application.submit import Accepted, Submit
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.domain.submission import Submission

#: The answer to one submission: the job, or the error that `Submit` raised. An error does not affect the others.
Answer = Accepted | Exception


def submit_all(
    submit: Submit,
    submissions: Sequence[Submission | TidemillError],
    *,
    tenant: str,
    trace: str,
    overlap: int,
    seconds: float | None = None,
) -> list[Answer]:
    """The answers, in the order of `submissions`. An error in the place of a submission is its answer.

    Up to `overlap` writes run at the same time, and none starts later than `seconds` from now. Submissions of one
    group, and submissions that may be the same job, are written in their order.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    answers: dict[int, Answer] = {}
    chains: dict[str, list[tuple[int, Callable[[], Accepted]]]] = {}
    for index, submission in enumerate(submissions):
        if isinstance(submission, TidemillError):
            answers[index] = submission
            continue
        try:
            # Each submission has its own trace, which tells an SDK retry of one write from another submission.
            pending = submit.pending(submission, tenant=tenant, trace=f"{trace}/{index}")
        except Exception as error:  # noqa: BLE001 - it is the answer
            answers[index] = error
        else:
            chains.setdefault(pending.serial_key or f"any order {index}", []).append((index, pending.insert))

    def write(chain: Sequence[tuple[int, Callable[[], Accepted]]]) -> None:
        for index, insert in chain:
            answers[index] = _answer(insert, deadline)

    with ThreadPoolExecutor(max_workers=min(overlap, len(chains)) or 1) as pool:
        list(pool.map(write, chains.values()))
    return [answers[index] for index in range(len(submissions))]


def _answer(insert: Callable[[], Accepted], deadline: float | None) -> Answer:
    if deadline is not None and time.monotonic() > deadline:
        return StoreUnavailableError(
            "the store was too slow for the whole batch; this job was not tried: submit it again"
        )
    try:
        return insert()
    except Exception as error:  # noqa: BLE001 - it is the answer
        return error
