"""The catalogue: what could be wrong with the protocol, each as one change of its text."""

from typing import Final

from tests.simulation.mutants.applied import Mutant
from tests.simulation.mutants.clauses import CLAUSES

_WRITES: Final = "shared.adapters.writes"
_OPERATORS: Final = "shared.adapters.operator_writes"
_STORE: Final = "shared.adapters.job_store"
_GROUPS: Final = "shared.adapters.groups"
_GROUP_ITEMS: Final = "shared.adapters.group_items"
_RUN: Final = "shared.application.run"
_SETTLE: Final = "shared.application.settle"
_SETTLING: Final = "shared.adapters.settling"
_QUEUES: Final = "shared.adapters.queues"
_WORK: Final = "functions.work.handler"
_BATCH: Final = "shared.adapters.message_batch"
_PUBLISH: Final = "shared.application.publish"
_DISPATCH: Final = "shared.domain.dispatch"
_VERDICT: Final = "shared.domain.verdict"
_OUTCOMES: Final = "shared.domain.outcomes"
_LIMIT: Final = "shared.adapters.limit_item"
_RUN_OF_MESSAGE: Final = "shared.adapters.message_run"
_STREAM: Final = "shared.adapters.stream"
_SUBMIT: Final = "shared.application.submit"
_TICK: Final = "functions.tick.handler"
_RECONCILE: Final = "shared.application.reconcile"
_HTTP: Final = "shared.adapters.http"
_CURSORS: Final = "shared.adapters.cursors"
_LISTING: Final = "shared.adapters.listing"
_BATCHES: Final = "shared.adapters.batch"

MUTANTS: Final = (
    *CLAUSES,
    # Submit.
    Mutant("insert without a condition", _WRITES, '" OR ".join(conditions)', '"attribute_not_exists(nothing)"'),
    Mutant(
        "insert may not replace the expired",
        _WRITES,
        '        "#expires_at <= :now",\n    ]',
        '        "#expires_at < #expires_at AND #expires_at <= :now",\n    ]',
    ),
    Mutant("insert replaces whatever will expire", _WRITES, '"#expires_at <= :now",', '"#expires_at > :now",'),
    Mutant(
        "any refusal of an insert is one's own",
        _STORE,
        "return (current.trace, current.created_at, current.body_hash) == (job.trace, job.created_at, job.body_hash)",
        "return True",
    ),
    Mutant(
        "submit forgets the key",
        "shared.application.submit",
        "            job_id = keyed_job_id(tenant, submission.key)\n",
        "            job_id = self._new_id()\n",
    ),
    # Claim.
    Mutant(
        "claim forgets the generation",
        _WRITES,
        '"#generation = :generation",',
        '"(#generation >= :generation OR #generation < :generation)",',
    ),
    Mutant("claim before its time", _WRITES, '"#due <= :now",', '"(#due <= :now OR #due > :now)",'),
    Mutant("claim takes what has ended", _WRITES, '"#due <= :now",', '"(attribute_not_exists(#due) OR #due <= :now)",'),
    Mutant("claim counts no attempt", _WRITES, '":one": number(1),\n', '":one": number(0),\n'),
    Mutant("one token for all", _RUN, "token = self._tools.new_token()", 'token = "token"'),
    Mutant("a lease that is over at once", _RUN, "lease_end = now + remaining + CLOCK_SKEW_MARGIN", "lease_end = now"),
    Mutant(
        "an own claim is refused", _STORE, "mine=lambda current: current.owner == token", "mine=lambda current: False"
    ),
    Mutant(
        "any claim is one's own", _STORE, "mine=lambda current: current.owner == token", "mine=lambda current: True"
    ),
    Mutant(
        "a claim taken back keeps its attempt",
        _WRITES,
        'expressions=["#attempt = #attempt - :one", "#generation = #generation + :one"],',
        'expressions=["#attempt = #attempt + :one", "#generation = #generation + :one"],',
    ),
    Mutant(
        "a claim taken back asks for no dispatch",
        _WRITES,
        'expressions=["#attempt = #attempt - :one", "#generation = #generation + :one"],',
        'expressions=["#attempt = #attempt - :one", "#generation = #generation"],',
    ),
    Mutant(
        "a claim taken back is another's",
        _WRITES,
        'conditions=["#owner = :owner"],\n        names=["attempt", "generation", "owner"],',
        'conditions=["(#owner = :owner OR attribute_exists(#owner))"],\n'
        '        names=["attempt", "generation", "owner"],',
    ),
    # Settle.
    Mutant(
        "no fence",
        _WRITES,
        'conditions=["#owner = :owner", *conditions],',
        'conditions=["(#owner = :owner OR attribute_exists(#owner) OR attribute_not_exists(#owner))", *conditions],',
    ),
    Mutant("settle forgets the generation", _WRITES, 'values={":one": number(1)},', 'values={":one": number(0)},'),
    Mutant(
        "what was asked to end lives on",
        _WRITES,
        'conditions=["attribute_not_exists(#cancel_requested_at)"],',
        'conditions=["(attribute_not_exists(#cancel_requested_at) OR attribute_exists(#cancel_requested_at))"],',
    ),
    Mutant("the owner stays", _WRITES, 'removes=["owner", *removes],', "removes=[*removes],"),
    Mutant("nobody settled last", _WRITES, 'sets={**sets, "last_owner": token},', "sets={**sets},"),
    Mutant("the ended stay due", _WRITES, 'removes=[*removes, "due"]', "removes=[*removes]"),
    Mutant(
        "a live job may expire",
        _WRITES,
        'sets={**sets, "due": milliseconds(due)},',
        'sets={**sets, "due": milliseconds(due), TTL_ATTRIBUTE: seconds(due)},',
    ),
    Mutant(
        "the unique are forgotten",
        _WRITES,
        "max(kept_until, job.unique_until or kept_until)",
        "max(kept_until, kept_until)",
    ),
    Mutant("the dead are not found", _WRITES, "        sets |= attention(State.DEAD, job.id, now)\n", "        pass\n"),
    Mutant(
        "the scheduled are not found",
        _WRITES,
        "        sets |= attention(State.SCHEDULED, job.id, due)\n",
        "        pass\n",
    ),
    Mutant(
        "an own settle is refused",
        _STORE,
        "self._update(Write.SETTLE, request, mine=job.settled_in)",
        "self._update(Write.SETTLE, request, mine=lambda _: False)",
    ),
    Mutant(
        "an effect outside of the transaction",
        _SETTLING,
        "*puts, *orders, *effects])",
        "*puts, *orders])\n            transact(client, effects) if effects else None",
    ),
    Mutant(
        "effects without the settle",
        _SETTLING,
        'transact(client, [own("Update", request, table=table), *puts, *orders, *effects])',
        "transact(client, [*puts, *orders, *effects])",
    ),
    Mutant("a fenced settle is repeated", _SETTLING, "if current and job.settled_in(current):", "if current:"),
    Mutant("the follow-ups are forgotten", _SETTLING, "*puts, *orders, *effects])", "*effects])"),
    Mutant(
        "a release burns the attempt",
        _WRITES,
        '"attempt": number(job.attempt - 1), "releases"',
        '"attempt": number(job.attempt + 1), "releases"',
    ),
    Mutant(
        "a store that is busy means success",
        _SETTLE,
        "            raise trouble\n",
        "            return _report(job, outcome, written, now)\n",
    ),
    # Runs.
    Mutant(
        "a crashed job is run for ever",
        _OUTCOMES,
        "if job.attempt > policy.max_attempts:",
        "if job.attempt > policy.max_attempts + 100:",
    ),
    Mutant(
        "attempts without an end",
        _OUTCOMES,
        "job.attempt >= policy.max_attempts",
        "job.attempt >= policy.max_attempts + 3",
    ),
    Mutant("a job asked to end runs", _OUTCOMES, "    if job.cancel_requested_at:\n        return Stopped()\n", ""),
    Mutant(
        "a snooze burns the attempt",
        _OUTCOMES,
        "case Snoozed():\n            return _again(now + outcome.after, now=now, attempt=job.attempt - 1,",
        "case Snoozed():\n            return _again(now + outcome.after, now=now, attempt=job.attempt,",
    ),
    Mutant(
        "checkpoints go unfenced",
        _WRITES,
        '        conditions=["#owner = :owner"],\n        names=["owner"],\n        values={":owner": '
        'text(job.owner or "")},',
        '        conditions=["(#owner = :owner OR attribute_exists(#generation))"],\n        names=["owner", '
        '"generation"],\n        values={":owner": text(job.owner or "")},',
    ),
    # Messages.
    Mutant(
        "the worker answers nothing",
        _WORK,
        "return composition.worker().work(event, context)",
        "return (composition.worker().work(event, context), {})[1]",
    ),
    Mutant("put-backs are acknowledged", _BATCH, "if message.report.put_back_until:", "if not message.report:"),
    Mutant(
        "a lease held elsewhere is acknowledged",
        _VERDICT,
        "{Verdict.GONE, Verdict.DUPLICATE, Verdict.STALE}",
        "{Verdict.GONE, Verdict.DUPLICATE, Verdict.STALE, Verdict.LEASED}",
    ),
    Mutant(
        "an early message is acknowledged",
        _VERDICT,
        "{Verdict.GONE, Verdict.DUPLICATE, Verdict.STALE}",
        "{Verdict.GONE, Verdict.DUPLICATE, Verdict.STALE, Verdict.EARLY}",
    ),
    Mutant(
        "every message is put back",
        _VERDICT,
        "return self in {Verdict.GONE, Verdict.DUPLICATE, Verdict.STALE}",
        "return False",
    ),
    # Publish.
    Mutant(
        "failed entries are ignored",
        _QUEUES,
        'return [int(entry["Id"]) for entry in answer.get("Failed", [])]',
        "return []",
    ),
    Mutant(
        "a queue that does not answer has it",
        _QUEUES,
        "        except StoreUnavailableError:\n            return indices\n",
        "        except StoreUnavailableError:\n            return []\n",
    ),
    Mutant(
        "publish reports no failures",
        "functions.publish.handler",
        "failed = [*published.failed]",
        "failed: list[str] = []",
    ),
    Mutant(
        "retries are not dispatched",
        _DISPATCH,
        "{State.QUEUED, State.RETRYING, State.DEAD}",
        "{State.QUEUED, State.DEAD}",
    ),
    Mutant(
        "the dead have no letter",
        _DISPATCH,
        "{State.QUEUED, State.RETRYING, State.DEAD}",
        "{State.QUEUED, State.RETRYING}",
    ),
    Mutant(
        "nudges are not dispatched",
        _DISPATCH,
        "(before.state, before.generation, before.nudged_at) != (\n        after.state,\n        "
        "after.generation,\n        after.nudged_at,\n    )",
        "(before.state, before.generation) != (\n        after.state,\n        after.generation,\n    )",
    ),
    Mutant(
        "groups do not go on",
        _PUBLISH,
        "            return self._store.advance(job.tenant",
        "            return None and self._store.advance(job.tenant",
    ),
    Mutant("a group is given up at once", _PUBLISH, "given_up=end.gone or not young", "given_up=True"),
    # Operators.
    Mutant(
        "cancel ends a run that is not its own",
        _OPERATORS,
        "AT_REST: Final = frozenset(before for before, after in TRANSITIONS[Write.CANCEL].items() if before "
        "not in after)",
        "AT_REST: Final = frozenset(before for before, after in TRANSITIONS[Write.CANCEL].items())",
    ),
    Mutant(
        "a cancelled job stays due",
        _OPERATORS,
        'removes=["due", "death", *ATTENTION],',
        'removes=["death", *ATTENTION],',
    ),
    Mutant(
        "a request to end sticks to the next run",
        _OPERATORS,
        '            "#state = :running",\n',
        '            "(#state = :running OR attribute_exists(#state))",\n',
    ),
    Mutant(
        "wake whatever its state",
        _OPERATORS,
        '"#state = :scheduled",',
        '"(#state = :scheduled OR attribute_exists(#state))",',
    ),
    Mutant(
        "redrive whatever its state",
        _OPERATORS,
        "f\"#state IN ({', '.join(redrivable)})\",",
        "f\"(#state IN ({', '.join(redrivable)}) OR attribute_exists(#state))\",",
    ),
    Mutant(
        "redrive keeps the TTL", _OPERATORS, '*(TTL_ATTRIBUTE, "finished_at", "death",', '*("finished_at", "death",'
    ),
    Mutant("redrive keeps the generation", _OPERATORS, '":one": number(1), ', '":one": number(0), '),
    Mutant(
        "redrive keeps the attempts",
        _OPERATORS,
        '        "attempt": number(0),\n',
        '        "attempt": number(job.attempt),\n',
    ),
    Mutant("redrive keeps the deadline", _OPERATORS, '"hops", "deadline"),', '"hops"),'),
    Mutant(
        "nudge takes a live lease", _OPERATORS, '"#due <= :overdue",', '"(#due <= :overdue OR attribute_exists(#due))",'
    ),
    Mutant("nudge leaves the owner", _OPERATORS, '        removes = ["owner"]\n', "        removes = []\n"),
    # Groups.
    Mutant(
        "a group forgets its order",
        _GROUP_ITEMS,
        "replace(self, tail=sequence), replace(job, sequence=sequence, state=State.WAITING, due=None)",
        "replace(self, tail=sequence), replace(job, sequence=sequence)",
    ),
    Mutant(
        "a group is not read again",
        _GROUP_ITEMS,
        'condition = "attribute_not_exists(#version)" if order.version is None else "#version = :read"',
        'condition = "attribute_not_exists(#version)" if order.version is None else "(#version = :read OR '
        'attribute_exists(#version))"',
    ),
    Mutant(
        "a group goes on past the living",
        _GROUPS,
        "return not head.state.terminal or (head.state is State.DEAD and head.blocks)",
        "return False",
    ),
    Mutant(
        "a group goes on past a dead head that blocks",
        _GROUPS,
        "return not head.state.terminal or (head.state is State.DEAD and head.blocks)",
        "return not head.state.terminal",
    ),
    Mutant(
        "a turn is given to the cancelled",
        _GROUP_ITEMS,
        '            "#state = :waiting"\n',
        '            "(#state = :waiting OR attribute_exists(#state))"\n',
    ),
    Mutant(
        "a place is lost",
        _GROUPS,
        'return [self._entry("Put", group_items.put_place(order, job))] if job.state is State.WAITING else []',
        "return []",
    ),
    # Limits.
    Mutant(
        "a slot has no end",
        _LIMIT,
        '"until": _microseconds(place.until)}',
        '"until": _microseconds(place.until + KEPT * 9)}',
    ),
    Mutant(
        "a slot is taken twice",
        _LIMIT,
        'conditions.append(f"(attribute_not_exists(#{slot}) OR #{slot}.#until <= :now)")',
        'conditions.append(f"(attribute_not_exists(#{slot}) OR #{slot}.#until <> :now)")',
    ),
    Mutant(
        "a limit keeps to one tenant",
        _RUN,
        "whose = [] if job_type.limit_spans_tenants else [job.tenant]",
        "whose = [job.tenant]",
    ),
    Mutant(
        "a slot too many",
        _LIMIT,
        "for slot in range(place.limit.concurrency or 0)]",
        "for slot in range((place.limit.concurrency or -1) + 1)]",
    ),
    Mutant("a rate is ignored", _LIMIT, "return (rate.count - 1) * interval(rate)", "return 99 * interval(rate)"),
    Mutant(
        "a burst is one too large",
        _LIMIT,
        "return (rate.count - 1) * interval(rate)",
        "return rate.count * interval(rate)",
    ),
    Mutant(
        "the first of a rate is free",
        _LIMIT,
        "sets[ARRIVAL] = _microseconds(now + interval(rate))",
        "sets[ARRIVAL] = _microseconds(now)",
    ),
    # Two versions at once.
    Mutant(
        "an older version writes over what it cannot read",
        "shared.adapters.requests",
        '            f"#{SCHEMA_ATTRIBUTE} <= :new_{SCHEMA_ATTRIBUTE}",\n',
        "",
    ),
    Mutant(
        "a request to end makes a run's document newer",
        _OPERATORS,
        '        sets={"cancel_requested_at": milliseconds(now)},\n',
        '        sets={"cancel_requested_at": milliseconds(now), "schema": number(SCHEMA_VERSION)},\n',
    ),
    Mutant(
        "a newer message is rubbish",
        _RUN_OF_MESSAGE,
        "Report(ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until)",
        "Report(ending=Ending.MALFORMED, cause=error)",
    ),
    Mutant(
        "a newer document is acknowledged",
        _RUN_OF_MESSAGE,
        "            attempt.unavailable(error)\n",
        "            attempt.unavailable(error)\n"
        "            if attempt.report and isinstance(error, NewerSchemaError):\n"
        "                attempt.report = replace(attempt.report, put_back_until=None)\n",
    ),
    Mutant("an unknown type dies at once", _RUN, "if job.holds >= MOST_HOLDS_OF_A_VERSION:", "if job:"),
    Mutant(
        "an unknown type uses up attempts",
        _RUN,
        "            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)\n",
        "            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)\n        raise refusal\n",
    ),
    Mutant(
        "a type that is not known has a policy of its own",
        _SETTLE,
        "RetryPolicy(max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS)",
        "RetryPolicy(max_attempts=1)",
    ),
    Mutant(
        "publish passes over what it cannot read",
        _STREAM,
        "                batch.unreadable = unreadable\n                break\n",
        "                continue\n",
    ),
    Mutant("publish gives up at once what it cannot read", _STREAM, "< PATIENCE:", "< PATIENCE * 0:"),
    Mutant(
        "reconcile tells nobody of what it cannot read",
        _RECONCILE,
        "                    unreadable.append(came_of_it)\n",
        "                    continue\n",
    ),
    # Clocks and alarms.
    Mutant("a tick forgets its time", _TICK, 'key=f"{type_} {scheduled_at}"', "key=type_"),
    Mutant("a tick has no key", _TICK, 'type=type_, key=f"{type_} {scheduled_at}"', "type=type_"),
    Mutant(
        "reconcile passes groups over",
        _RECONCILE,
        "job = self._store.advance(found.tenant, found.group, now=self._clock())",
        "job = None",
    ),
    Mutant(
        "reconcile is silent about what it could not do",
        "functions.reconcile.handler",
        "if failed := reconciled.count(Act.FAILED):",
        "if failed := 0:",
    ),
    Mutant(
        "publish is silent about what it gave up",
        "shared.adapters.telemetry",
        "            if trouble.given_up:\n                self._pass_over()\n",
        "",
    ),
    # Callers and owners.
    Mutant("a session is a tenant", _HTTP, 'principal = user.partition(":")[0]', "principal = user"),
    Mutant("an account is a tenant", _HTTP, 'return f"{account}:{principal}"', "return str(account)"),
    Mutant(
        "whoever called first is every caller",
        _HTTP,
        'return f"{account}:{principal}"',
        'return globals().setdefault("_caller", f"{account}:{principal}")',
    ),
    Mutant("a cursor is anybody's", _CURSORS, "json.dumps([*bound_to, ", "json.dumps([*bound_to[1:], "),
    Mutant("a cursor is good for any filters", _CURSORS, "json.dumps([*bound_to, ", "json.dumps([*bound_to[:1], "),
    Mutant(
        "a listing ends with its first page",
        _LISTING,
        "return Page(jobs=jobs, end=entry)",
        "return Page(jobs=jobs, end=None)",
    ),
    Mutant("a page begins with the end of the one before", _LISTING, "if entry < below)", "if entry <= below)"),
    Mutant(
        "a batch accepts what failed",
        _BATCHES,
        "it is the answer\n        return error\n",
        "it is the answer\n        return Accepted(job=insert.args[1], replayed=False) if insert.args[1:] else error\n",
    ),
    Mutant(
        "answers of a batch come as they please",
        _BATCHES,
        "return [answers[index] for index in range(len(submissions))]",
        "return list(answers.values())",
    ),
    # Payloads.
    Mutant(
        "a second submission takes the payload of the first",
        _SUBMIT,
        "self._payloads.delete(stored)",
        'self._payloads.delete(getattr(refused, "current", None) or stored)',
    ),
    Mutant(
        "a conflict means that nothing was written",
        _STORE,
        'raise StoreUnavailableError(f"whether the job is there is unknown: {conflict}") from conflict',
        "raise conflict",
    ),
    Mutant(
        "payloads stay when their jobs go",
        "stacks.stream",
        "names.PAYLOAD_PLACE_ATTRIBUTE: _THERE",
        'names.PAYLOAD_PLACE_ATTRIBUTE: {"S": [{"exists": False}]}',
    ),
    Mutant(
        "payloads go when their jobs end",
        _PUBLISH,
        "not (after and after.payload_at == before.payload_at)",
        "not (after and not after.state.terminal)",
    ),
    Mutant(
        "what belongs to no job stays",
        _RECONCILE,
        "if payload.stored_at > self._clock() - ORPHANED_AFTER:",
        "if payload.stored_at:",
    ),
)
