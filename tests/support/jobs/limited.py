"""Types of which only so many may run for one key, and a note of how many did."""

import threading
import time
from collections import Counter
from datetime import timedelta

from pydantic import BaseModel

from tidemill import Rate, Run, job_type

#: How long a run takes: long enough that a batch's runs would meet.
RUN_SECONDS = 0.05


class Keyed(BaseModel):
    """For whom the job is."""

    key: str = "a"


class Meetings:
    """How many ran at the same time, for each key."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()

    def forget(self) -> None:
        for counted in (self.inside, self.most, self.runs):
            counted.clear()

    def run(self, key: str) -> None:
        with self.lock:
            self.inside[key] += 1
            self.runs[key] += 1
            self.most[key] = max(self.most[key], self.inside[key])
        time.sleep(RUN_SECONDS)
        with self.lock:
            self.inside[key] -= 1


meetings = Meetings()


@job_type("test.limited", payload=Keyed, concurrency_per_key=2, key=lambda payload: payload.key)
def limited(payload: Keyed, _run: Run) -> None:
    meetings.run(payload.key)


@job_type(
    "test.rated",
    payload=Keyed,
    rate_per_key=Rate(count=3, period=timedelta(minutes=1)),
    key=lambda payload: payload.key,
)
def rated(payload: Keyed, _run: Run) -> None:
    meetings.run(payload.key)
