"""The work that both builds do."""

import time

from pydantic import BaseModel

from tidemill import Run, job_type


class Work(BaseModel):
    """The payload: how long to work, and text that makes it as large as the measurement needs."""

    milliseconds: int = 0
    padding: str = ""


def do(work: Work) -> dict[str, bool]:
    if work.milliseconds:
        time.sleep(work.milliseconds / 1000)
    return {"done": True}


@job_type("bench.work", payload=Work)
def bench(work: Work, _run: Run) -> dict[str, bool]:
    return do(work)
