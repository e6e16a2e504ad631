"""The work of the textbook build. It imports nothing of Tidemill."""

import time

from pydantic import BaseModel


class Work(BaseModel):
    """The payload, with the members of `tests.benchmarks.jobs.work`."""

    milliseconds: int = 0
    padding: str = ""


def do(work: Work) -> dict[str, bool]:
    if work.milliseconds:
        time.sleep(work.milliseconds / 1000)
    return {"done": True}
