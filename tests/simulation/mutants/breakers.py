"""Circuit breakers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

BREAKERS: Final = (
    Mutant(
        "each job probes an open breaker",
        modules.BREAKER,
        "Breaker.may_probe",
        "not self.closed and (not under_way) and (self.next_probe_at(now=now) <= now)",
        "not self.closed",
    ),
    Mutant(
        "a run that meets an open breaker uses its attempt",
        modules.BREAKER_USE,
        "BreakerUse.handler_ended",
        "self._breakers.blocks(name)",
        "not self._breakers.look(name).name",
    ),
    Mutant(
        "a job joins the probe that is under way",
        modules.BREAKER,
        "Breaker.may_probe",
        "self.state is BreakerState.HALF_OPEN and now < self.probe_until",
        "False",
    ),
    Mutant(
        "a probe that succeeds closes nothing",
        modules.BREAKERS,
        "Breakers.succeeded",
        "rules.closed(breaker, now=self._clock())",
        "rules.failed(breaker, job, error='')",
    ),
    Mutant(
        "the line of a closed breaker stands still",
        modules.RELEASE,
        "Releaser.release_from_breaker",
        "self.release(line, parked=parked)",
        "[]",
    ),
    Mutant(
        "a breaker that is forced closed parks its jobs",
        modules.BREAKERS,
        "Breakers.admits",
        "forced is BreakerState.CLOSED",
        "forced is BreakerState.CLOSED and self.look(policy.name).closed",
    ),
    Mutant(
        "a breaker that is forced open lets calls pass while it is closed by itself",
        modules.BREAKERS,
        "Breakers.admits",
        "return forced is BreakerState.CLOSED",
        "if forced is BreakerState.CLOSED or self.look(policy.name).closed:\n    return True",
    ),
    Mutant(
        "the line of a breaker that is forced closed stands still",
        modules.BREAKERS,
        "Breakers.blocks",
        "(self.forced(name) or self.look(name).state) is not BreakerState.CLOSED",
        "not self.look(name).closed or self.forced(name) is BreakerState.OPEN",
    ),
    Mutant(
        "wake reports the time since the last probe as the age of an open breaker",
        modules.BREAKERS,
        "Breakers.open_for",
        "breaker.outage_since",
        "breaker.called_at",
    ),
    Mutant(
        "wake reports the age of a breaker that is forced",
        modules.BREAKERS,
        "Breakers.open_for",
        "if self.forced(name):\n    return timedelta(0)",
        "",
    ),
    Mutant(
        "wake reports only breakers without a probe under way or elected",
        modules.BREAKERS,
        "Breakers.open_for",
        "not breaker.may_elect(now=self._clock())",
        "breaker.may_elect(now=self._clock())",
    ),
    Mutant(
        "a breaker keeps the text of its last error",
        modules.BREAKER_USE,
        "BreakerUse._report",
        "class_name(next(leaves(error)))",
        "str(error)",
    ),
)
