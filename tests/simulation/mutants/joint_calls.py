"""Faults of batch handlers and of joint settles."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

CALLED_JOINTLY: Final = (
    Mutant("a later attempt shares a call", modules.JOINT_RULES, "may_share_a_call", "job.attempt == 1", ""),
    Mutant(
        "a call has more jobs than its type allows",
        modules.COMBINER,
        "Combiner._begin",
        "batch is None or len(batch.pending) >= most",
        "batch is None",
    ),
    Mutant(
        "jobs of a call swap their outcomes",
        modules.JOINT_CALLS,
        "JointCalls._returned",
        "participants, outcomes",
        "participants, outcomes[::-1]",
    ),
    Mutant("outcomes are not counted", modules.JOINT_RULES, "outcomes_of", "len(returned) != count", "False"),
    Mutant(
        "the error of a call is that of each job",
        modules.JOINT_CALLS,
        "JointCalls._failed",
        "if not failed.another_helps:\n"
        "    return {participant: _Returned(error=failed.error_of_one()) for participant, _ in ready}",
        "if True:\n    return {participant: _Returned(error=error) for participant, _ in ready}",
    ),
    Mutant(
        "jobs of several tenants share a call",
        modules.JOINT_CALLS,
        "_batch_of",
        "(called.job_type.name, called.job.tenant)",
        "called.job_type.name",
    ),
    Mutant(
        "a failed call costs each of its jobs an attempt",
        modules.SHARED_CALL_GATE,
        "SharedCallGate.instead_of",
        "BatchCallError | JobTimeoutError",
        "JobTimeoutError",
    ),
    Mutant(
        "the time of a shared call is that of each job",
        modules.SHARED_CALL_GATE,
        "SharedCallGate.instead_of",
        "BatchCallError | JobTimeoutError",
        "BatchCallError",
    ),
    Mutant(
        "a job that a failed call held back shares the next one",
        modules.JOINT_RULES,
        "may_share_a_call",
        "not job.held_by(HoldCause.CALL)",
        "",
    ),
    Mutant(
        "all jobs of a failed call share the next one",
        modules.JOINT_CALLS,
        "JointCalls._failed",
        "ready[:jobs // 2], ready[jobs // 2:]",
        "ready",
    ),
    Mutant(
        "a handler of many jobs logs as one of them",
        modules.JOINT_CALLS,
        "JointCalls._returned",
        "self._scope([called.job for called in calleds]) if len(calleds) > 1 else nullcontext()",
        "nullcontext()",
    ),
    Mutant(
        "a joint settle has no fence",
        modules.JOINT_SETTLE,
        "JointSettle._settle_part",
        "settles = [own('Update', self._request(each), table=self._table) for each in part]",
        "settles: list[Entry] = []",
    ),
    Mutant(
        "a refused settle of many counts as written",
        modules.JOINT_SETTLE,
        "JointSettle._without_refused",
        "self._errors[_fence(each)] = WriteRefusedError(Write.SETTLE, current)",
        "pass",
    ),
    Mutant(
        "a conflict of a joint settle counts as written",
        modules.JOINT_SETTLE,
        "JointSettle._settle_part",
        "self._errors |= {_fence(each): error for each in part}",
        "",
    ),
    Mutant(
        "a joint settle forgets the half of a refused one",
        modules.JOINT_SETTLE,
        "JointSettle._settle_part",
        "self._settle_part(part[:middle])",
        "",
    ),
    Mutant(
        "what jobs add to one item counts once", modules.EFFECTS, "_entry", "amounts.get(name, 0) + amount", "amount"
    ),
    Mutant(
        "equal updates of two jobs are one",
        modules.EFFECTS,
        "_name",
        "_text(effect) if isinstance(put, Mapping) and 'ConditionExpression' not in put else None",
        "_text(effect)",
    ),
    Mutant(
        "the error of a joint settle is lost",
        modules.JOINT_CALLS,
        "JointParticipant.settle",
        "if (error := settles.combine(Settling(job, settlement, now), by=self)):\n    raise error",
        "settles.combine(Settling(job, settlement, now), by=self)",
    ),
    Mutant(
        "follow-up jobs of a joint settle are dropped",
        modules.JOINT_CALLS,
        "JointParticipant.settle",
        "settlement.follow_ups",
        "",
    ),
)
