"""Checks of how long a job waits after a run, and of its hops. The figures are not the constants of the engine."""

import json
from typing import Final

from tests.simulation.checks.odd_values import ODD_TYPE
from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    capped,
    number_of,
    replay_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.names import BATCH_TYPE

#: "The default (minimum) delay for a queue is 0 seconds. The maximum is 15 minutes." A longer wait is scheduled.
LONGEST_DELAY_MS: Final = 900_000
_LONGEST_RELEASE_MS: Final = 60_000
#: A hold for another version of the code, for an outage, and for a limit.
_LONGEST_HOLD_MS: Final = 901_000
_LONGEST_HOLD_WITHOUT_VERSIONS_MS: Final = 901_000
_DISPATCHED: Final = frozenset({State.QUEUED, State.RETRYING})
#: The delay that an error of a group names, in `jobs/odd_values.py`.
_DELAY_IN_GROUP_MS: Final = 5_000


class WaitChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        checks = (
            self.long_waits_are_scheduled,
            self.retries_wait_as_the_policy_says,
            self.snoozes_wait_as_the_handler_says,
            self.holds_are_short,
            self.hops_are_counted,
            self.jobs_die_of_hops_beyond_the_policy,
        )
        watch_jobs(world, changed=checks, inserted=self.follow_ups_inherit_their_hops)

    def long_waits_are_scheduled(self, key: str, before: Item, after: Item) -> None:
        """A message can be delayed for a quarter of an hour. A job that waits for longer is woken in time."""
        if not run_ended(before, after):
            return
        wait_ms = number_of(after, "due") - self._now_ms
        dispatched = state_of(after) not in _DISPATCHED or wait_ms <= LONGEST_DELAY_MS + self._skew_ms
        # The worker decided between its claim and now.
        since_ms = number_of(after, "due") - number_of(before, "claimed_at")
        scheduled = state_of(after) is not State.SCHEDULED or since_ms > LONGEST_DELAY_MS
        what = f"{state_of(after)}, due {wait_ms // 1000} s ahead"
        require(dispatched and scheduled, "long waits are scheduled", what, key)

    def retries_wait_as_the_policy_says(self, key: str, before: Item, after: Item) -> None:
        """Full jitter: from zero to a ceiling that doubles with each attempt. `RetryAfter` sets the time itself."""
        if not run_ended(before, after) or before.get("errors") == after.get("errors") or "errors" not in after:
            return
        last = after["errors"]["L"][-1]["M"]
        if "next_due" not in last:
            return
        wait_ms, policy = number_of(last, "next_due") - number_of(last, "at"), job_type(text_of(after, "type")).retry
        least_ms, most_ms = 0.0, policy.backoff_seconds * 1000 * 2.0 ** (number_of(before, "attempt") - 1)
        most_ms = min(most_ms, policy.backoff_cap_seconds * 1000)
        if text_of(last, "error_class") == "RetryAfter":
            planned = _planned(after, "seconds")
            least_ms, most_ms = (0, 86_400_000) if planned is None else (planned * 60_000, planned * 60_000)
            if text_of(after, "type") == ODD_TYPE:
                least_ms = most_ms = _DELAY_IN_GROUP_MS
        fits = least_ms - 1 <= wait_ms <= most_ms + 1
        require(fits, "retries wait as the policy says", f"{wait_ms} ms, not {least_ms:.0f} to {most_ms:.0f} ms", key)

    def snoozes_wait_as_the_handler_says(self, key: str, before: Item, after: Item) -> None:
        planned = _planned(after, "seconds")
        snoozed = text_of(after, "type") == "sim.snooze" and _step("hops", before, after) == 1
        if not snoozed or planned is None or not run_ended(before, after):
            return
        after_ms = 60_000 * planned + 1000
        earliest_ms, latest_ms = number_of(before, "claimed_at") + after_ms, self._now_ms + self._skew_ms + after_ms
        fits = earliest_ms <= number_of(after, "due") <= latest_ms
        what = f"due {number_of(after, 'due')}, not {earliest_ms:.0f} to {latest_ms:.0f}"
        require(fits, "a snoozed job waits as its handler says", what, key)

    def holds_are_short(self, key: str, before: Item, after: Item) -> None:
        """A job that cannot run through no fault of its own is tried again soon."""
        if not run_ended(before, after):
            return
        check, wait_ms = "a held job is tried again soon", number_of(after, "due") - self._now_ms
        if _step("releases", before, after) == 1:
            most_ms = min(1000 * 2 ** number_of(before, "releases"), _LONGEST_RELEASE_MS)
            require(wait_ms <= most_ms + self._skew_ms, check, f"released for {wait_ms} ms, not {most_ms}", key)
        limited = job_type(text_of(after, "type")).limit is not None or capped(after)
        if _step("holds", before, after) == 1 and not limited and state_of(after) is not State.PARKED:
            versions = self._world.rollout.planned
            most_ms = _LONGEST_HOLD_MS if versions else _LONGEST_HOLD_WITHOUT_VERSIONS_MS
            require(wait_ms <= most_ms + self._skew_ms, check, f"held for {wait_ms} ms, not {most_ms}", key)

    def hops_are_counted(self, key: str, before: Item, after: Item) -> None:
        """One for each snooze and each continuation; a redrive begins again."""
        step = _step("hops", before, after)
        redriven = state_of(before) is State.DEAD and state_of(after) is not State.DEAD
        if not redriven:
            counted = step == 0 or (step == 1 and run_ended(before, after))
            require(counted, "hops are counted", f"they moved by {step}, {state_of(before)} -> {state_of(after)}", key)

    def jobs_die_of_hops_beyond_the_policy(self, key: str, before: Item, after: Item) -> None:
        """The policy of a type that only another version knows is that version's."""
        if not run_ended(before, after):
            return
        hops, most = number_of(before, "hops"), job_type(text_of(after, "type")).retry.max_hops
        died = text_of(after, "death") == DeathReason.HOPS
        require(not died or hops > most, "hops stay within the policy", f"it died after {hops} of {most} hops", key)
        succeeded = state_of(after) is State.SUCCEEDED or _step("hops", before, after) == 1
        require(not succeeded or hops <= most, "hops stay within the policy", f"it ran after {hops} of {most}", key)

    def follow_ups_inherit_their_hops(self, key: str, after: Item) -> None:
        parent = self._world.jobs.items.get((f"{tenant_of(key)}#{text_of(after, 'parent')}",))
        wanted = number_of(parent, "hops") + 1 if parent else number_of(after, "hops")
        if "parent" not in after or text_of(parent, "type") == BATCH_TYPE:
            # The looks of a batch do not count as links of a chain.
            wanted = 0
        hops = number_of(after, "hops")
        require(hops == wanted, "follow-ups inherit the hops of their parent", f"{hops}, not {wanted}", key)
        if parent and "parent" in after and replay_of(after) is None:
            trace, given = text_of(after, "trace"), text_of(parent, "trace")
            require(trace == given, "follow-ups belong to the trace of their parent", f"{trace}, not {given}", key)

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


def _planned(item: Item, name: str) -> float | None:
    """A number in the payload; None if the payload is stored elsewhere."""
    value = json.loads(text_of(item, "payload")).get(name, 0) if "payload" in item else None
    return None if value is None else float(value)


def _step(name: str, before: Item, after: Item) -> int:
    return number_of(after, name) - number_of(before, name)


__all__ = ["LONGEST_DELAY_MS", "WaitChecks"]
