"""Many submissions at once: written side by side, and each has an answer of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tidemill.application.submit import REFUSALS, Accepted, Submit
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.domain.submission import Submission
from tidemill.powertools.idempotency import insert_once

#: What one submission came to. What was raised harms no other.
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
    """The answers in the order of `submissions`; an error that stands for one is its answer.

    Up to `overlap` calls are under way at once; nothing is begun later than `seconds` from now. Those of one group are
    written in their order, and so are those that may be one job.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    answers: dict[int, Answer] = {}
    chains: dict[str, list[tuple[int, Callable[[], Accepted]]]] = {}
    for index, submission in enumerate(submissions):
        if isinstance(submission, TidemillError):
            answers[index] = submission
            continue
        try:
            # A trace of its own: it tells the SDK's second try of one write from another submission of the same.
            job = submit.prepare(submission, tenant=tenant, trace=f"{trace}/{index}")
        except REFUSALS as refused:
            chains[f"refused {index}"] = [(index, partial(submit.earlier, submission, tenant=tenant, refused=refused))]
        except Exception as error:  # noqa: BLE001 - it is the answer
            answers[index] = error
        else:
            name = f"job {job.id}" if job.group is None else f"group {job.group}"
            chains.setdefault(name, []).append((index, partial(insert_once, submit, job)))

    def write(chain: Sequence[tuple[int, Callable[[], Accepted]]]) -> None:
        for index, insert in chain:
            answers[index] = _answered(insert, deadline)

    with ThreadPoolExecutor(max_workers=min(overlap, len(chains)) or 1) as pool:
        list(pool.map(write, chains.values()))
    return [answers[index] for index in range(len(submissions))]


def _answered(insert: Callable[[], Accepted], deadline: float | None) -> Answer:
    if deadline is not None and time.monotonic() > deadline:
        return StoreUnavailableError("the store was too slow for all of this batch; this one was not tried")
    try:
        return insert()
    except Exception as error:  # noqa: BLE001 - it is the answer
        return error
