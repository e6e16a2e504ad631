"""Two types that share a limit for each lane, and a record of how many ran at once."""

from tests.support.jobs.limited import Keyed, meetings
from tidemill import Adaptive, Run, SharedLimit, job_type

DOWNSTREAM = SharedLimit("downstream", concurrency_per_key=2)
PER_LANE = SharedLimit("lanes", concurrency_per_key=Adaptive(floor=1, ceiling=3, target_seconds=60), per_lane=True)


@job_type("test.charged", payload=Keyed, limit=DOWNSTREAM, key=lambda payload: payload.key)
def charged(payload: Keyed, _run: Run) -> None:
    meetings.run(payload.key)


@job_type("test.refunded", payload=Keyed, limit=DOWNSTREAM, key=lambda payload: payload.key)
def refunded(payload: Keyed, _run: Run) -> None:
    meetings.run(payload.key)


@job_type("test.laned", payload=Keyed, limit=PER_LANE)
def laned(payload: Keyed, _run: Run) -> None:
    meetings.run(payload.key)
