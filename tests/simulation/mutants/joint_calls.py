"""Faults of batch handlers and of joint settles."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

CALLED_JOINTLY: Final = (
    Mutant(
        "a later attempt shares a call",
        modules.JOINT_RULES,
        "return job.attempt == 1 and policy.max_attempts",
        "return policy.max_attempts",
    ),
    Mutant(
        "a call has more jobs than its type allows",
        modules.COMBINER,
        "if batch is None or len(batch.pending) >= most:",
        "if batch is None:",
    ),
    Mutant(
        "jobs of a call swap their outcomes",
        modules.JOINT_CALLS,
        "for participant, outcome in zip(participants, outcomes, strict=True)",
        "for participant, outcome in zip(participants, outcomes[::-1], strict=True)",
    ),
    Mutant(
        "outcomes are not counted",
        modules.JOINT_RULES,
        "    if len(returned) != count:\n",
        "    if False:\n",
    ),
    Mutant(
        "the error of a call is that of each job",
        modules.JOINT_CALLS,
        "        if not failed.another_helps:\n            return {participant: _Returned(error=failed.error_of_one())",
        "        if True:\n            return {participant: _Returned(error=error)",
    ),
    Mutant(
        "jobs of several tenants share a call",
        modules.JOINT_CALLS,
        "return (called.job_type.name, called.job.tenant), called.job_type.batch or 1",
        "return called.job_type.name, called.job_type.batch or 1",
    ),
    Mutant(
        "a failed call costs each of its jobs an attempt",
        modules.RUN,
        "            if not self._shared:\n                raise\n            return gates.held_apart(failed)\n",
        "            raise\n",
    ),
    Mutant(
        "the time of a shared call is that of each job",
        modules.RUN,
        "return self._gates.held_apart(error) if self._shared else Failed.because(error)",
        "return Failed.because(error)",
    ),
    Mutant(
        "a job that a failed call held back shares the next one",
        modules.JOINT_RULES,
        " and not job.held_by(HoldCause.CALL)",
        "",
    ),
    Mutant(
        "all jobs of a failed call share the next one",
        modules.JOINT_CALLS,
        "for half in (ready[: jobs // 2], ready[jobs // 2 :]):",
        "for half in (ready,):",
    ),
    Mutant(
        "a handler of many jobs logs as one of them",
        modules.JOINT_CALLS,
        "with self._scope([called.job for called in calleds]) if len(calleds) > 1 else nullcontext():",
        "with nullcontext():",
    ),
    Mutant(
        "a joint settle has no fence",
        modules.JOINT_SETTLE,
        'settles = [own("Update", self._request(each), table=self._table) for each in part]',
        "settles: list[Entry] = []",
    ),
    Mutant(
        "a refused settle of many counts as written",
        modules.JOINT_SETTLE,
        "                self._errors[_fence(each)] = WriteRefusedError(Write.SETTLE, current)\n",
        "                pass\n",
    ),
    Mutant(
        "a conflict of a joint settle counts as written",
        modules.JOINT_SETTLE,
        "                self._errors |= {_fence(each): error for each in part}\n                return\n",
        "                return\n",
    ),
    Mutant(
        "a joint settle forgets the half of a refused one",
        modules.JOINT_SETTLE,
        "                self._settle_part(part[:middle])\n",
        "",
    ),
    Mutant(
        "what jobs add to one item counts once",
        modules.EFFECTS,
        "amounts[name] = amounts.get(name, 0) + amount",
        "amounts[name] = amount",
    ),
    Mutant(
        "equal updates of two jobs are one",
        modules.EFFECTS,
        'return _text(effect) if isinstance(put, Mapping) and "ConditionExpression" not in put else None',
        "return _text(effect)",
    ),
    Mutant(
        "the error of a joint settle is lost",
        modules.JOINT_CALLS,
        "        if error := settles.combine(Settling(job, settlement, now), by=self):\n            raise error\n",
        "        settles.combine(Settling(job, settlement, now), by=self)\n",
    ),
    Mutant(
        "follow-up jobs of a joint settle are dropped",
        modules.JOINT_CALLS,
        "or not settlement.writes or settlement.follow_ups:",
        "or not settlement.writes:",
    ),
)
