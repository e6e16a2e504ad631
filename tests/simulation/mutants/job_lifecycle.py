"""A job from its submission to its end."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PROTOCOL: Final = (
    # Submit.
    Mutant(
        "insert without a condition",
        modules.WRITES,
        '" OR ".join([*conditions, *replaces.conditions])',
        '"attribute_not_exists(nothing)"',
    ),
    Mutant(
        "insert may not replace the expired",
        modules.WRITES,
        '        "#expires_at <= :now",\n    ]',
        '        "#expires_at < #expires_at AND #expires_at <= :now",\n    ]',
    ),
    Mutant(
        "insert replaces every job that will expire", modules.WRITES, '"#expires_at <= :now",', '"#expires_at > :now",'
    ),
    Mutant(
        "any refusal of an insert is one's own",
        modules.STORE,
        "same = (current.trace, current.created_at, current.body_hash) == (job.trace, job.created_at, job.body_hash)",
        "same = True",
    ),
    Mutant(
        "submit forgets the key",
        "tidemill.application.submit",
        "            job_id = _id_of_key(submission, submission.key, tenant)\n",
        "            job_id = self._new_id()\n",
    ),
    # Claim.
    Mutant(
        "claim forgets the generation",
        modules.WRITES,
        '"#generation = :generation",',
        '"(#generation >= :generation OR #generation < :generation)",',
    ),
    Mutant("claim before its time", modules.WRITES, '"#due <= :now",', '"(#due <= :now OR #due > :now)",'),
    Mutant(
        "claim takes what has ended",
        modules.WRITES,
        '"#due <= :now",',
        '"(attribute_not_exists(#due) OR #due <= :now)",',
    ),
    Mutant("claim counts no attempt", modules.WRITES, '":one": number(1),\n', '":one": number(0),\n'),
    Mutant("one token for all", modules.RUN, "token = self._context.new_token()", 'token = "token"'),
    Mutant(
        "a lease that is over at once",
        modules.RUN,
        "lease_end = now + remaining + CLOCK_SKEW_MARGIN",
        "lease_end = now",
    ),
    Mutant(
        "an own claim is refused",
        modules.STORE,
        "mine=lambda current: current.owner == token",
        "mine=lambda current: False",
    ),
    Mutant(
        "any claim is one's own",
        modules.STORE,
        "mine=lambda current: current.owner == token",
        "mine=lambda current: True",
    ),
    Mutant(
        "a claim taken back keeps its attempt",
        modules.WRITES,
        '"#attempt = #attempt - :one",',
        '"#attempt = #attempt + :one",',
    ),
    Mutant(
        "a claim taken back asks for no dispatch",
        modules.WRITES,
        '            "#generation = #generation + :one",\n',
        '            "#generation = #generation",\n',
    ),
    Mutant(
        "a claim taken back is another's",
        modules.WRITES,
        'conditions=["#owner = :owner"],\n        names=["attempt", "open_runs", "generation", "owner"],',
        'conditions=["(#owner = :owner OR attribute_exists(#owner))"],\n'
        '        names=["attempt", "open_runs", "generation", "owner"],',
    ),
    # Settle.
    Mutant(
        "no fence",
        modules.WRITES,
        'conditions=["#owner = :owner", *conditions],',
        'conditions=["(#owner = :owner OR attribute_exists(#owner) OR attribute_not_exists(#owner))", *conditions],',
    ),
    Mutant(
        "settle forgets the generation",
        modules.WRITES,
        'values={":one": number(1), **(values or {})},',
        'values={":one": number(0), **(values or {})},',
    ),
    Mutant(
        "what was asked to end lives on",
        modules.WRITES,
        'conditions.append("attribute_not_exists(#cancel_requested_at)")',
        'conditions.append("(attribute_not_exists(#cancel_requested_at) OR attribute_exists(#cancel_requested_at))")',
    ),
    Mutant("the owner stays", modules.WRITES, 'token}, ["owner", *removes]', "token}, [*removes]"),
    Mutant("the last owner is not kept", modules.WRITES, '{**sets, "last_owner": token}, [', "{**sets}, ["),
    Mutant("the ended stay due", modules.WRITES, 'removes = [*removes, "due"]', "removes=[*removes]"),
    Mutant(
        "a live job may expire",
        modules.WRITES,
        'sets={**sets, "due": milliseconds(due)},',
        'sets={**sets, "due": milliseconds(due), TTL_ATTRIBUTE: seconds(due)},',
    ),
    Mutant(
        "the unique are forgotten",
        modules.WRITES,
        "max(kept_until, job.unique_until or kept_until)",
        "max(kept_until, kept_until)",
    ),
    Mutant(
        "the dead are not found",
        modules.WRITES,
        "        sets |= indexes.attention(State.DEAD, job.id, now)\n",
        "        pass\n",
    ),
    Mutant(
        "the scheduled are not found",
        modules.WRITES,
        "        sets |= indexes.attention(State.SCHEDULED, job.id, due)\n",
        "        pass\n",
    ),
    Mutant(
        "an own settle is refused",
        modules.STORE,
        "self._update(Write.SETTLE, request, mine=partial(job.settled_as, settlement.state))",
        "self._update(Write.SETTLE, request, mine=lambda _: False)",
    ),
    Mutant(
        "an effect outside of the transaction",
        modules.SETTLING,
        "*puts, *orders, *effects])",
        "*puts, *orders])\n            transact(client, effects) if effects else None",
    ),
    Mutant(
        "effects without the settle",
        modules.SETTLING,
        'transact(client, [own("Update", request, table=table), *puts, *orders, *effects])',
        "transact(client, [*puts, *orders, *effects])",
    ),
    Mutant(
        "a fenced settle is repeated",
        modules.SETTLING,
        "if current and job.settled_as(settlement.state, current):",
        "if current:",
    ),
    Mutant("the follow-ups are forgotten", modules.SETTLING, "*puts, *orders, *effects])", "*effects])"),
    Mutant(
        "a release burns the attempt",
        modules.WRITES,
        '"attempt": job.attempt - 1, "open_runs"',
        '"attempt": job.attempt + 1, "open_runs"',
    ),
    Mutant(
        "a store that is busy means success",
        modules.SETTLE,
        "            raise trouble\n",
        "            return _report(job, outcome, written, now)\n",
    ),
    # Runs.
    Mutant(
        "a crashed job is run for ever",
        modules.OUTCOMES,
        "if job.attempt > policy.max_attempts:",
        "if job.attempt > policy.max_attempts + 100:",
    ),
    Mutant(
        "attempts without an end",
        modules.OUTCOMES,
        "job.attempt >= policy.max_attempts",
        "job.attempt >= policy.max_attempts + 3",
    ),
    Mutant(
        "a job runs although its deadline has passed",
        modules.OUTCOMES,
        "if job.deadline and job.deadline < now:",
        "if False:",
    ),
    Mutant(
        "a job that is too old runs", modules.OUTCOMES, "if job.useful_until and job.useful_until < now:", "if False:"
    ),
    Mutant(
        "a job expires before its time",
        modules.OUTCOMES,
        "if job.useful_until and job.useful_until < now:",
        "if job.useful_until:",
    ),
    Mutant(
        "a job asked to end runs", modules.OUTCOMES, "    if job.cancel_requested_at:\n        return Stopped()\n", ""
    ),
    Mutant(
        "a snooze burns the attempt",
        modules.OUTCOMES,
        '"cause": Why.SNOOZED, "attempt": job.attempt - 1,',
        '"cause": Why.SNOOZED, "attempt": job.attempt,',
    ),
    Mutant(
        "checkpoints go unfenced",
        modules.RUN_WRITES,
        'overwrite the progress of the next run.\n            "#owner = :owner",',
        'overwrite the progress of the next run.\n            "(#owner = :owner OR attribute_exists(#schema))",',
    ),
    Mutant(
        "a checkpoint that was held up replaces a later one",
        modules.RUN_WRITES,
        "(attribute_not_exists(#checkpoint_at) OR #checkpoint_at < :new_checkpoint_at)",
        "(attribute_not_exists(#checkpoint_at) OR #checkpoint_at <> :new_checkpoint_at)",
    ),
    # Messages.
    Mutant(
        "the worker answers nothing",
        modules.WORK,
        "return worker_composition.worker().work(event, context)",
        "return (worker_composition.worker().work(event, context), {})[1]",
    ),
    Mutant("put-backs are acknowledged", modules.BATCH, "if message.report.put_back_until:", "if not message.report:"),
    Mutant(
        "a lease held elsewhere is acknowledged",
        modules.VERDICT,
        "{ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}",
        "{ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE, ClaimVerdict.LEASED}",
    ),
    Mutant(
        "an early message is acknowledged",
        modules.VERDICT,
        "{ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}",
        "{ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE, ClaimVerdict.EARLY}",
    ),
    Mutant(
        "every message is put back",
        modules.VERDICT,
        "return self in {ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}",
        "return False",
    ),
    # Stray threads.
    Mutant(
        "a stray thread keeps its process",
        modules.WORKER,
        "                self.end_process()\n",
        "                pass\n",
    ),
    Mutant(
        "a process with closed streams lives on",
        modules.WORKER,
        "            if batch.strays() or changes.lost:\n",
        "            if batch.strays():\n",
    ),
    Mutant(
        "a handler begins in a process with closed streams",
        modules.BATCH,
        "stray_beside=lambda: self._spoiled() or bool(self.strays()),",
        "stray_beside=lambda: bool(self.strays()),",
    ),
    Mutant(
        "a worker restores nothing of its process",
        "tidemill.system.process_state",
        "                part.restore(before)\n            (restored if part.same(before, _read(part)) else lost)",
        "                pass\n            restored",
    ),
    Mutant(
        "a stray thread ends the batch",
        modules.BATCH,
        "        while running:\n",
        "        while running and not self.strays():\n",
    ),
    Mutant(
        "a worker exits in the middle of its calls", modules.WORKER, "            batch.await_other_threads()\n", ""
    ),
    Mutant(
        "a worker that exits deletes its whole batch",
        modules.WORKER,
        "for receipt, until in put_back.items() if not until]",
        "for receipt in put_back]",
    ),
    Mutant(
        "a worker that exits hides the rest",
        modules.WORKER,
        "self.messages.hide({receipt: until for",
        "strays or self.messages.hide({receipt: until for",
    ),
    Mutant(
        "a handler starts while its attempt expires",
        modules.RUN,
        "if self._expired or self._report or self._context.steady() >= self.deadline:",
        "if self._report:",
    ),
    # Publish.
    Mutant(
        "failed entries are ignored",
        modules.QUEUES,
        'return [_refusal(entry) for entry in answer.get("Failed", [])]',
        "return []",
    ),
    Mutant(
        "a queue that does not answer has it",
        modules.QUEUES,
        "            return [Refusal(index, error=error_text(error)) for index in indices]\n",
        "            return []\n",
    ),
    Mutant(
        "a denied queue has its messages",
        modules.QUEUES,
        "            return [Refusal(index, sender_fault=True, error=error_text(error)) for index in indices]\n",
        "            return []\n",
    ),
    Mutant(
        "a denied queue fails the messages of all lanes",
        modules.QUEUES,
        "        except Exception as error:",
        "        except () as error:",
    ),
    Mutant(
        "publish reports no failures",
        "tidemill.entrypoints.publish",
        "_failed(published.failed)",
        "_failed(())",
    ),
    Mutant(
        "retries are not dispatched",
        modules.DISPATCH,
        "{State.QUEUED, State.RETRYING, State.DEAD}",
        "{State.QUEUED, State.DEAD}",
    ),
    Mutant(
        "dead jobs send no DLQ message",
        modules.DISPATCH,
        "{State.QUEUED, State.RETRYING, State.DEAD}",
        "{State.QUEUED, State.RETRYING}",
    ),
    Mutant(
        "nudges are not dispatched",
        modules.DISPATCH,
        "(before.state, before.generation, before.nudged_at) != (\n        after.state,\n        "
        "after.generation,\n        after.nudged_at,\n    )",
        "(before.state, before.generation) != (\n        after.state,\n        after.generation,\n    )",
    ),
    Mutant(
        "groups do not go on",
        modules.GROUP_REACTION,
        "return self._store.advance(tenant, group",
        "return None and self._store.advance(tenant, group",
    ),
    Mutant(
        "a group waits for a dead job that was deleted",
        modules.GROUP_REACTION,
        "return before if before and before.state is State.DEAD and before.blocks else None",
        "return None",
    ),
    Mutant(
        "a job that enters to wait advances no group",
        modules.GROUP_REACTION,
        "return after if after.state.terminal or after.state is State.WAITING else None",
        "return after if after.state.terminal else None",
    ),
    Mutant(
        "publish drops what it cannot do",
        modules.PUBLISH,
        "self._owed.owe(work, now=self._clock(), error=error)",
        "pass",
    ),
    Mutant(
        "publish blocks its shard",
        modules.PUBLISH,
        "return FailedStep(sequence, step, work, error, handed_over=True)",
        "return FailedStep(sequence, step, work, error, handed_over=False)",
    ),
    Mutant(
        "refused messages are forgotten",
        modules.PUBLISH,
        "for refusal in refused if refusal[0] not in out)",
        "for refusal in ())",
    ),
)
