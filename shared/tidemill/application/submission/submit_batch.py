"""Submit many jobs at once: the writes run in parallel, and each submission has its own answer.

Jobs that are one document each are inserted by calls of up to 25. A job that such a call leaves open is inserted by a
call of its own, with the same id and trace: it finds the job if that was written and the answer was lost.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain as chained
from operator import itemgetter

from tidemill.application.ports import FEWEST_TOGETHER, MOST_TOGETHER
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import PendingSubmission, Submit
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission

#: The answer to one submission: the job, or the error that `Submit` raised. An error does not affect the others.
Answer = Accepted | Exception
#: Inserts new jobs in one call, and says which of them it has certainly written. It raises nothing.
InsertTogether = Callable[[Sequence[Job]], Sequence[bool]]

#: Submissions in their order, each with its index.
_Chain = list[tuple[int, PendingSubmission]]


def submit_all(
    submit: Submit,
    submissions: Iterable[Submission | TidemillError],
    *,
    tenant: str,
    trace: str,
    overlap: int,
    seconds: float | None = None,
    together: InsertTogether | None = None,
) -> list[Answer]:
    """The answers, in the order of `submissions`. An error in the place of a submission is its answer.

    Up to `overlap` writes run at the same time, and none starts later than `seconds` from now. Submissions of one
    group, and submissions that may be the same job, are written in their order.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    answers: dict[int, Answer] = {}
    pendings: _Chain = []
    asked = list(submissions)
    for index, submission in enumerate(asked):
        if isinstance(submission, TidemillError):
            answers[index] = submission
            continue
        try:
            # Each submission has its own trace, which tells an SDK retry of one write from another submission.
            pending = submit.pending(submission, tenant=tenant, trace=f"{trace}/{index}")
        except Exception as error:  # noqa: BLE001 - it is the answer
            answers[index] = error
        else:
            pendings.append((index, pending))
    chains = _chains(pendings)

    def write(chain: _Chain) -> None:
        for index, pending in chain:
            if index not in answers:
                answers[index] = _answer(pending.insert, deadline)

    with ThreadPoolExecutor(max_workers=min(overlap, len(chains)) or 1) as pool:
        if together and not _is_over(deadline):
            parts = _parts(chains)
            answers |= chained.from_iterable(pool.map(lambda part: _written(together, part), parts))
        list(pool.map(write, [chain for chain in chains if not _answered(chain, answers)]))
    return [answers[index] for index in range(len(asked))]


def _chains(pendings: _Chain) -> Sequence[_Chain]:
    """In the order of their first submissions. Two with a serial key in common are in one, also by way of others."""
    chains: dict[int, _Chain] = {}
    chain_of: dict[str, int] = {}
    for index, pending in pendings:
        earlier = {chain_of[key] for key in pending.serial_keys if key in chain_of}
        chains[index] = sorted(chained(*map(chains.pop, earlier)), key=itemgetter(0))
        chains[index].append((index, pending))
        chain_of |= dict.fromkeys((key for _index, each in chains[index] for key in each.serial_keys), index)
    # A long chain begins early.
    return sorted(chains.values(), key=lambda chain: chain[0][0])


def _parts(chains: Iterable[_Chain]) -> Sequence[dict[int, Accepted]]:
    """The answers of each call, if all its jobs are written. Only the first of a chain: the others wait for it."""
    firsts = (chain[0] for chain in chains)
    plain = [(index, accepted) for index, pending in firsts if (accepted := pending.plain())]
    if len(plain) < FEWEST_TOGETHER:
        return []
    return [dict(plain[start : start + MOST_TOGETHER]) for start in range(0, len(plain), MOST_TOGETHER)]


def _written(together: InsertTogether, part: Mapping[int, Accepted]) -> list[tuple[int, Accepted]]:
    written = together([accepted.job for accepted in part.values()])
    return [answer for answer, done in zip(part.items(), written, strict=True) if done]


def _answered(chain: _Chain, answers: Mapping[int, Answer]) -> bool:
    return all(index in answers for index, _pending in chain)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _answer(insert: Callable[[], Accepted], deadline: float | None) -> Answer:
    if _is_over(deadline):
        return StoreUnavailableError("the store was too slow for the whole batch; submit this job again")
    try:
        return insert()
    except Exception as error:  # noqa: BLE001 - it is the answer
        return error
