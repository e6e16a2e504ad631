"""A job from its submission to its end."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PROTOCOL: Final = (
    # Submit.
    Mutant(
        "insert without a condition",
        modules.WRITES,
        "insert",
        "' OR '.join([*conditions, *replaces.conditions])",
        "'attribute_not_exists(nothing)'",
    ),
    Mutant(
        "insert may not replace the expired",
        modules.WRITES,
        "insert",
        "'#expires_at <= :now'",
        "'#expires_at < #expires_at AND #expires_at <= :now'",
    ),
    Mutant(
        "insert replaces every job that will expire",
        modules.WRITES,
        "insert",
        "'#expires_at <= :now'",
        "'#expires_at > :now'",
    ),
    Mutant(
        "any refusal of an insert is one's own",
        modules.STORE,
        "DynamoJobStore.insert_if_absent.mine",
        "(current.trace, current.created_at, current.body_hash) == (job.trace, job.created_at, job.body_hash)",
        "True",
    ),
    Mutant(
        "submit forgets the key",
        modules.CHECKED_SUBMISSION,
        "check",
        "id_of_key(submission, submission.key, tenant)",
        "new_id()",
    ),
    # Claim.
    Mutant(
        "claim forgets the generation",
        modules.WRITES,
        "claim",
        "'#generation = :generation'",
        "'(#generation >= :generation OR #generation < :generation)'",
    ),
    Mutant("claim before its time", modules.WRITES, "claim", "'#due <= :now'", "'(#due <= :now OR #due > :now)'"),
    Mutant(
        "claim takes what has ended",
        modules.WRITES,
        "claim",
        "'#due <= :now'",
        "'(attribute_not_exists(#due) OR #due <= :now)'",
    ),
    Mutant("claim counts no attempt", modules.WRITES, "claim", "number(1)", "number(0)"),
    Mutant("one token for all", modules.RUN, "Attempt.claim", "self._context.new_token()", "'token'"),
    Mutant("a lease that is over at once", modules.RUN, "Attempt.claim", "now + remaining + CLOCK_SKEW_MARGIN", "now"),
    Mutant(
        "an own claim is refused", modules.STORE, "DynamoJobStore.claim.write", "current.lease.owner == token", "False"
    ),
    Mutant(
        "any claim is one's own", modules.STORE, "DynamoJobStore.claim.write", "current.lease.owner == token", "True"
    ),
    Mutant(
        "a claim taken back keeps its attempt",
        modules.WRITES,
        "unclaim",
        "'#attempt = #attempt - :one'",
        "'#attempt = #attempt + :one'",
    ),
    Mutant(
        "a claim taken back asks for no dispatch",
        modules.WRITES,
        "unclaim",
        "'#generation = #generation + :one'",
        "'#generation = #generation'",
    ),
    Mutant(
        "a claim taken back is another's",
        modules.WRITES,
        "unclaim",
        "'#owner = :owner'",
        "'(#owner = :owner OR attribute_exists(#owner))'",
    ),
    # Settle.
    Mutant(
        "no fence",
        modules.WRITES,
        "_end_run",
        "'#owner = :owner'",
        "'(#owner = :owner OR attribute_exists(#owner) OR attribute_not_exists(#owner))'",
    ),
    Mutant("settle forgets the generation", modules.WRITES, "_continue_job", "number(1)", "number(0)"),
    Mutant(
        "what was asked to end lives on",
        modules.WRITES,
        "_as_at_claim",
        "'attribute_not_exists(#cancel_requested_at)'",
        "'(attribute_not_exists(#cancel_requested_at) OR attribute_exists(#cancel_requested_at))'",
    ),
    Mutant("the owner stays", modules.WRITES, "_end_run", "'owner', *removes", "*removes"),
    Mutant("the last owner is not kept", modules.WRITES, "_end_run", "'last_owner': token", ""),
    Mutant("the ended stay due", modules.WRITES, "settle", "*removes, 'due'", "*removes"),
    Mutant(
        "a live job may expire",
        modules.WRITES,
        "_continue_job",
        "'due': milliseconds(due)",
        "'due': milliseconds(due), TTL_ATTRIBUTE: seconds(due)",
    ),
    Mutant(
        "the unique are forgotten", modules.WRITES, "ended", "job.lifetime.unique_until or kept_until", "kept_until"
    ),
    Mutant(
        "the dead are not found", modules.WRITES, "settle", "sets |= indexes.attention(State.DEAD, job.id, now)", "pass"
    ),
    Mutant(
        "the scheduled are not found",
        modules.WRITES,
        "settle",
        "sets |= indexes.attention(State.SCHEDULED, job.id, due)",
        "pass",
    ),
    Mutant(
        "an own settle is refused",
        modules.STORE,
        "DynamoJobStore.settle",
        "partial(job.settled_as, settlement.state)",
        "lambda _: False",
    ),
    Mutant(
        "an effect outside of the transaction",
        modules.SETTLING,
        "settle_with_effects",
        "transact(client, [own('Update', request, table=table), *puts, *orders, *effects])",
        "transact(client, [own('Update', request, table=table), *puts, *orders])\n"
        "transact(client, effects) if effects else None",
    ),
    Mutant(
        "effects without the settle", modules.SETTLING, "settle_with_effects", "own('Update', request, table=table)", ""
    ),
    Mutant(
        "a fenced settle is repeated",
        modules.SETTLING,
        "settle_with_effects",
        "current and job.settled_as(settlement.state, current)",
        "current",
    ),
    Mutant("the follow-ups are forgotten", modules.SETTLING, "settle_with_effects", "*puts, *orders", ""),
    Mutant("a release burns the attempt", modules.WRITES, "release", "job.attempt - 1", "job.attempt + 1"),
    Mutant(
        "a store that is busy means success",
        modules.SETTLE,
        "Settler._settle_as",
        "raise trouble",
        "return _report(job, outcome, written, now)",
    ),
    # Runs.
    Mutant(
        "a crashed job is run for ever",
        modules.OUTCOMES,
        "_used_up",
        "if job.attempt > policy.max_attempts:\n"
        "    message = f'{job.attempt - 1} runs began, and the last did not end: killed, out of memory "
        "or out of time'\n"
        "    return Failed(error_class=CRASHED, message=message, death=DeathReason.CRASHED)",
        "if job.attempt > policy.max_attempts + 100:\n"
        "    message = f'{job.attempt - 1} runs began, and the last did not end: killed, out of memory "
        "or out of time'\n"
        "    return Failed(error_class=CRASHED, message=message, death=DeathReason.CRASHED)",
    ),
    Mutant(
        "attempts without an end", modules.OUTCOMES, "_after_failure", "policy.max_attempts", "policy.max_attempts + 3"
    ),
    Mutant(
        "a job runs although its deadline has passed",
        modules.OUTCOMES,
        "outcome_before_run",
        "job.lifetime.deadline and job.lifetime.deadline < now",
        "False",
    ),
    Mutant(
        "a job that is too old runs",
        modules.OUTCOMES,
        "outcome_before_run",
        "job.lifetime.useful_until and job.lifetime.useful_until < now",
        "False",
    ),
    Mutant(
        "a job expires before its time",
        modules.OUTCOMES,
        "outcome_before_run",
        "job.lifetime.useful_until and job.lifetime.useful_until < now",
        "job.lifetime.useful_until",
    ),
    Mutant(
        "a job asked to end runs",
        modules.OUTCOMES,
        "outcome_before_run",
        "if job.cancel.requested_at:\n    return Stopped()",
        "",
    ),
    Mutant("a snooze burns the attempt", modules.OUTCOMES, "_settlement", "job.attempt - 1", "job.attempt"),
    Mutant(
        "checkpoints go unfenced",
        modules.RUN_WRITES,
        "checkpoint",
        "'#owner = :owner'",
        "'(#owner = :owner OR attribute_exists(#schema))'",
    ),
    Mutant(
        "a checkpoint that was held up replaces a later one",
        modules.RUN_WRITES,
        "checkpoint",
        "'(attribute_not_exists(#checkpoint_at) OR #checkpoint_at < :new_checkpoint_at)'",
        "'(attribute_not_exists(#checkpoint_at) OR #checkpoint_at <> :new_checkpoint_at)'",
    ),
    # Messages.
    Mutant(
        "the worker answers nothing",
        modules.WORK,
        "handle",
        "worker().work(event, context)",
        "(worker().work(event, context), {})[1]",
    ),
    Mutant(
        "put-backs are acknowledged",
        modules.BATCH,
        "Batch.require_done",
        "message.report.put_back_until",
        "not message.report",
    ),
    Mutant(
        "a lease held elsewhere is acknowledged",
        modules.VERDICT,
        "ClaimVerdict.acknowledged",
        "ClaimVerdict.STALE",
        "ClaimVerdict.STALE, ClaimVerdict.LEASED",
    ),
    Mutant(
        "an early message is acknowledged",
        modules.VERDICT,
        "ClaimVerdict.acknowledged",
        "ClaimVerdict.STALE",
        "ClaimVerdict.STALE, ClaimVerdict.EARLY",
    ),
    Mutant(
        "every message is put back",
        modules.VERDICT,
        "ClaimVerdict.acknowledged",
        "self in {ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}",
        "False",
    ),
    # Publish.
    Mutant(
        "failed entries are ignored",
        modules.QUEUES,
        "refusals_of",
        "[_refusal(entry) for entry in answer.get('Failed', [])]",
        "[]",
    ),
    Mutant(
        "a queue that does not answer has it",
        modules.QUEUES,
        "SqsLanes._send_batch",
        "[Refusal(index, error=error_text(error)) for index in indices]",
        "[]",
    ),
    Mutant(
        "a denied queue has its messages",
        modules.QUEUES,
        "SqsLanes._send_batch",
        "[Refusal(index, sender_fault=True, error=error_text(error)) for index in indices]",
        "[]",
    ),
    Mutant("a denied queue fails the messages of all lanes", modules.QUEUES, "SqsLanes._send_batch", "Exception", "()"),
    Mutant("publish reports no failures", "tidemill.entrypoints.publish", "_published", "published.failed", "()"),
    Mutant("retries are not dispatched", modules.DISPATCH, "dispatch", "State.RETRYING", ""),
    Mutant(
        "dead jobs send no DLQ message", modules.DISPATCH, "dispatch", "State.RETRYING, State.DEAD", "State.RETRYING"
    ),
    Mutant(
        "nudges are not dispatched",
        modules.DISPATCH,
        "_changed",
        "(before.state, before.generation, before.nudges.last_at) != (after.state, after.generation, "
        "after.nudges.last_at)",
        "(before.state, before.generation) != (after.state, after.generation)",
    ),
    Mutant(
        "groups do not go on",
        modules.GROUP_REACTION,
        "GroupReaction._advance",
        "self._store.advance(tenant, group, now=self._clock())",
        "None and self._store.advance(tenant, group, now=self._clock())",
    ),
    Mutant(
        "a group waits for a dead job that was deleted",
        modules.GROUP_REACTION,
        "_moves_group",
        "before if before and before.state is State.DEAD and before.group.blocks else None",
        "None",
    ),
    Mutant(
        "a job that enters to wait advances no group",
        modules.GROUP_REACTION,
        "_moves_group",
        "after.state.terminal or after.state is State.WAITING",
        "after.state.terminal",
    ),
    Mutant(
        "publish drops what it cannot do",
        modules.PUBLISH,
        "Publisher._hand_over",
        "self._owed.owe(work, now=self._clock(), error=error)",
        "pass",
    ),
    Mutant(
        "publish blocks its shard", modules.PUBLISH, "Publisher._hand_over", "handed_over=True", "handed_over=False"
    ),
    Mutant(
        "refused messages are forgotten",
        modules.PUBLISH,
        "Publisher.publish",
        "for refusal in refused if refusal[0] not in out",
        "for refusal in ()",
    ),
)
