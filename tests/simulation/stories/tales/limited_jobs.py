"""Jobs whose key has no free slot, or no start left, wait in a line."""

from tests.simulation.stories.operator_tools import payments_are_down
from tests.simulation.stories.stage import BOB, Mishap, Stage
from tests.simulation.world.world import PAYMENTS


def jobs_wait_for_the_slot_of_their_key(stage: Stage) -> None:
    """Three of one key. The slot goes from one to the next, in the order submitted."""
    for seconds in (3, 2, 0):
        stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k", "seconds": seconds}})
        stage.passes(0.1)
    stage.passes(20)


def jobs_wait_for_the_rate_of_their_key(stage: Stage) -> None:
    """Two may start in two minutes. The third and the fourth have times on their lane, and the fifth is parked."""
    for number in range(5):
        stage.post("/jobs", {"type": "sim.paced", "payload": {"key": "k", "count": number}})
        stage.passes(0.1)
    stage.passes(40)
    stage.wakes()
    stage.passes(160)


def a_rate_and_slots_together(stage: Stage) -> None:
    """One start each 20 seconds, for all tenants."""
    stage.post("/jobs", {"type": "sim.metered", "payload": {"seconds": 5}})
    stage.passes(3)
    stage.post("/jobs", {"type": "sim.metered"}, tenant="111122223333:AROABBB")
    stage.passes(40)


def two_types_share_a_limit(stage: Stage) -> None:
    """Of two lanes: the second job waits for the slot that the first has."""
    stage.post("/jobs", {"type": "sim.ships", "payload": {"key": "k", "seconds": 5}})
    stage.passes(3)
    stage.post("/jobs", {"type": "sim.tracks", "payload": {"key": "k"}}, tenant="111122223333:AROABBB")
    stage.passes(20)


def an_adaptive_limit_grows_while_its_jobs_are_fast(stage: Stage) -> None:
    """The first takes its only slot. The second waits, and finds more room."""
    for seconds in (0.5, 0.4):
        stage.post("/jobs", {"type": "sim.adaptive", "payload": {"key": "k", "seconds": seconds}})
        stage.passes(0.1)
    stage.passes(10)


def an_adaptive_limit_shrinks_when_a_job_is_slow(stage: Stage) -> None:
    """Its number is 2 after a fast run. A run of seven seconds is above the target of two."""
    for seconds in (0.5, 7.0):
        stage.post("/jobs", {"type": "sim.adaptive", "payload": {"key": "k", "seconds": seconds}})
        stage.passes(4)
    stage.passes(20)


def an_adaptive_limit_meets_a_service_that_fails(stage: Stage) -> None:
    """One call succeeds, one fails, one has no answer in time, and one succeeds again. No tenant has its own number."""
    kind: dict[str, object] = {"type": "sim.calls", "payload": {}}
    stage.post("/jobs", kind)
    stage.passes(4)
    payments_are_down(stage, 3)
    stage.post("/jobs", kind, tenant=BOB)
    stage.passes(4)
    payments_are_down(stage, 5, slower=40)
    stage.post("/jobs", kind)
    stage.passes(30)


def an_adaptive_limit_meets_a_service_that_throttles(stage: Stage) -> None:
    """And a job whose handler fails by itself, which says nothing of the service."""
    stage.world.downstreams[PAYMENTS].refuses_above = 0
    stage.post("/jobs", {"type": "sim.calls", "payload": {}})
    stage.post("/jobs", {"type": "sim.adaptive", "payload": {"fails": 1}})
    stage.passes(4)
    stage.world.downstreams[PAYMENTS].refuses_above = None
    stage.passes(20)


def wake_releases_a_job_that_its_line_has_forgotten(stage: Stage) -> None:
    """The worker is killed when it gives back its slot, so the slot ends with its lease."""
    stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k", "seconds": 4}})
    stage.passes(3)
    parked = stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k"}})
    stage.passes(3)
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_AFTER)
    stage.passes(20)
    stage.wakes()
    stage.get(f"/jobs/{parked['id']}")
    stage.passes(20)
    stage.wakes()


def a_parked_job_is_cancelled(stage: Stage) -> None:
    """So no job takes the slot. Wake strikes the line off its list once it has been still for 20 minutes."""
    stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k", "seconds": 5}})
    stage.passes(3)
    parked = stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k"}})
    stage.passes(3)
    stage.post(f"/jobs/{parked['id']}/cancel")
    stage.passes(10)
    stage.wakes()
    stage.passes(1_200)
    stage.wakes()
