"""Circuit breakers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

BREAKERS: Final = (
    Mutant(
        "each job probes an open breaker",
        modules.BREAKER,
        "return not self.closed and not under_way and self.next_probe_at(now=now) <= now",
        "return not self.closed",
    ),
    Mutant(
        "a run that meets an open breaker uses its attempt",
        modules.BREAKER_USE,
        "sorted(called) if self._breakers.blocks(name)), None)",
        "sorted(called) if not self._breakers.look(name).name), None)",
    ),
    Mutant(
        "a job joins the probe that is under way",
        modules.BREAKER,
        "under_way = self.state is BreakerState.HALF_OPEN and now < self.probe_until",
        "under_way = False",
    ),
    Mutant(
        "a probe that succeeds closes nothing",
        modules.BREAKERS,
        "lambda breaker: rules.closed(breaker, now=self._clock())",
        "lambda breaker: rules.failed(breaker, job, error='')",
    ),
    Mutant(
        "the line of a closed breaker stands still",
        modules.RELEASE,
        "            return self.release(line, parked=parked)",
        "            return []",
    ),
    Mutant(
        "a breaker that is forced closed parks its jobs",
        modules.BREAKERS,
        """            return forced is BreakerState.CLOSED
        breaker = self._contradict(policy, self._look_if_open(policy.name), job)
        breaker =""",
        """            return forced is BreakerState.CLOSED and self.look(policy.name).closed
        breaker = self._contradict(policy, self._look_if_open(policy.name), job)
        breaker =""",
    ),
    Mutant(
        "a breaker that is forced open lets calls pass while it is closed by itself",
        modules.BREAKERS,
        """            return forced is BreakerState.CLOSED
        breaker = self._contradict(policy, self._look_if_open(policy.name), job)
        breaker =""",
        """            if forced is BreakerState.CLOSED or self.look(policy.name).closed:
                return True
        breaker = self._contradict(policy, self._look_if_open(policy.name), job)
        breaker =""",
    ),
    Mutant(
        "the line of a breaker that is forced closed stands still",
        modules.BREAKERS,
        "return (self.forced(name) or self.look(name).state) is not BreakerState.CLOSED",
        "return not self.look(name).closed or self.forced(name) is BreakerState.OPEN",
    ),
    Mutant(
        "wake reports the time since the last probe as the age of an open breaker",
        modules.BREAKERS,
        "max(self._clock() - breaker.outage_since, timedelta(0))",
        "max(self._clock() - breaker.called_at, timedelta(0))",
    ),
    Mutant(
        "wake reports the age of a breaker that is forced",
        modules.BREAKERS,
        """        if self.forced(name):
            return timedelta(0)
""",
        "",
    ),
    Mutant(
        "wake reports only breakers without a probe under way or elected",
        modules.BREAKERS,
        "waits = not breaker.closed and not breaker.may_elect(now=self._clock())",
        "waits = not breaker.closed and breaker.may_elect(now=self._clock())",
    ),
    Mutant(
        "a breaker keeps the text of its last error",
        modules.BREAKER_USE,
        "class_name(next(leaves(error)))",
        "str(error)",
    ),
)
