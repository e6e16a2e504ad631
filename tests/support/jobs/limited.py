"""Types that limit the runs of one key, and a record of how many ran."""

import threading
import time
from collections import Counter
from datetime import timedelta

from pydantic import BaseModel

from tests.support.patience import PATIENCE_SECONDS
from tidemill import Rate, Run, job_type

#: The length of a run, which gives a further run the chance to break the limit.
RUN_SECONDS = 0.05


class Keyed(BaseModel):
    """The payload: the key of the limit."""

    key: str = "a"


class Meetings:
    """How many runs there were of each key, and how many at the same time."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        #: How many runs of a key the first run waits for, itself included.
        self.expected: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()

    def forget(self) -> None:
        for counted in (self.expected, self.inside, self.most, self.runs):
            counted.clear()

    def run(self, key: str) -> None:
        with self.lock:
            self.inside[key] += 1
            self.runs[key] += 1
            self.most[key] = max(self.most[key], self.inside[key])
            self.lock.notify_all()
            self.lock.wait_for(lambda: self.most[key] >= self.expected[key], PATIENCE_SECONDS)
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
