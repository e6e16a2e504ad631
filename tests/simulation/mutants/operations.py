"""What holds jobs back, looks after them, and keeps what is too large for a document."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

OPERATION: Final = (
    # Operators.
    Mutant(
        "cancel ends a run that is not its own",
        modules.OPERATORS,
        "at_rest = _states(AT_REST)",
        "at_rest = _states({*AT_REST, State.RUNNING})",
    ),
    Mutant(
        "a cancelled job stays due",
        modules.OPERATORS,
        'removes=["due", "death", "wait", *ATTENTION],',
        'removes=["death", "wait", *ATTENTION],',
    ),
    Mutant(
        "a request to end sticks to the next run",
        modules.OPERATORS,
        '            "#state = :running",\n',
        '            "(#state = :running OR attribute_exists(#state))",\n',
    ),
    Mutant(
        "wake ignores the state",
        modules.OPERATORS,
        '"#state = :scheduled",',
        '"(#state = :scheduled OR attribute_exists(#state))",',
    ),
    Mutant(
        "redrive ignores the state",
        modules.OPERATORS,
        "f\"#state IN ({', '.join(redrivable)})\",",
        "f\"(#state IN ({', '.join(redrivable)}) OR attribute_exists(#state))\",",
    ),
    Mutant(
        "redrive keeps the TTL",
        modules.OPERATORS,
        '*(TTL_ATTRIBUTE, "finished_at", "death",',
        '*("finished_at", "death",',
    ),
    Mutant("redrive keeps the generation", modules.OPERATORS, '":one": number(1), ', '":one": number(0), '),
    Mutant(
        "redrive keeps the attempts",
        modules.OPERATORS,
        '        "attempt": number(0),\n',
        '        "attempt": number(job.attempt),\n',
    ),
    Mutant(
        "redrive keeps the age",
        modules.OPERATORS,
        '*("useful_until", "cancel_requested_at",',
        '*("cancel_requested_at",',
    ),
    Mutant("redrive keeps the deadline", modules.OPERATORS, '"hops", "deadline"),', '"hops"),'),
    Mutant(
        "nudge takes a live lease",
        modules.OPERATORS,
        '"#due <= :overdue",',
        '"(#due <= :overdue OR attribute_exists(#due))",',
    ),
    Mutant("nudge leaves the owner", modules.OPERATORS, '        removes = ["owner"]\n', "        removes = []\n"),
    # Redrives with probes.
    Mutant(
        "a probe that died again counts as a success",
        "tidemill.application.redrive_probes",
        "    if current.state is State.SUCCEEDED:\n",
        "    if current.state.terminal:\n",
    ),
    Mutant(
        "jobs follow a probe that did not succeed",
        "tidemill.application.redrive_probes",
        "if probe and probe.verdict is ProbeVerdict.SUCCEEDED and (",
        "if probe and (",
    ),
    # Groups.
    Mutant(
        "a group forgets its order",
        modules.GROUP_ITEMS,
        "replace(job, sequence=tail.sequence, state=State.WAITING, due=None)",
        "replace(job, sequence=tail.sequence)",
    ),
    Mutant(
        "a group is not read again",
        modules.GROUP_ITEMS,
        '"ConditionExpression": "#version = :read",',
        '"ConditionExpression": "(#version = :read OR attribute_exists(#version))",',
    ),
    Mutant(
        "a group goes on past the living",
        modules.GROUPS,
        "return not job.state.terminal or (job.state is State.DEAD and job.blocks)",
        "return False",
    ),
    Mutant(
        "a group skips a dead job that blocks it",
        modules.GROUPS,
        "return not job.state.terminal or (job.state is State.DEAD and job.blocks)",
        "return not job.state.terminal",
    ),
    Mutant(
        "a turn is given to the cancelled",
        modules.GROUP_ITEMS,
        '            "#state = :waiting"\n',
        '            "(#state = :waiting OR attribute_exists(#state))"\n',
    ),
    Mutant(
        "a place is lost",
        modules.GROUPS,
        'return [self._entry("Put", group_items.put_position(job))] if job.state is State.WAITING else []',
        "return []",
    ),
    Mutant(
        "a first tail does not meet the head",
        modules.GROUPS,
        "if order.head is not None:",
        "if order.head is not None and order.tail is None:",
    ),
    Mutant(
        "an idle group keeps its tail",
        modules.GROUPS,
        "        if tail is not None:\n            entries.append",
        "        if tail is None:\n            entries.append",
    ),
    # Owed work.
    Mutant(
        "owed work is never done",
        modules.OWED,
        "self._store.advance(owed.work.tenant, owed.work.name, now=self._clock())",
        "None",
    ),
    Mutant(
        "a running job needs no message",
        modules.OWED,
        "if job and job.state is State.RUNNING and not self._nudger.nudge(job):",
        "if False:",
    ),
    Mutant(
        "a message is owed and not sent",
        modules.OWED,
        "            self._store.resend(job, now=self._clock())\n",
        "            pass\n",
    ),
    Mutant(
        "the deletion of a payload is not stored",
        modules.PUBLISH,
        "            return self._hand_over(step.sequence, step.name, step.work, error_text(error))",
        "            if step.name is PublishStep.DELETE:\n"
        "                return FailedStep(step.sequence, step.name, step.work, error_text(error), handed_over=True)\n"
        "            return self._hand_over(step.sequence, step.name, step.work, error_text(error))",
    ),
    Mutant(
        "the deletion of a payload is dropped",
        modules.OWED,
        "self._payloads.delete(work.tenant, work.name, work.payload_at)",
        "pass",
    ),
    Mutant(
        "only publish owes the deletion of a payload",
        modules.OWING_PAYLOADS,
        "                self._owe(tenant, job_id, location, since=self._clock(), error=error_text(failed))\n",
        "                raise\n",
    ),
    # Repairs that nothing needs, or that do what a step forgot.
    Mutant(
        "each deletion of a payload is owed as well",
        modules.OWING_PAYLOADS,
        "            self._payloads.delete(tenant, job_id, location)\n",
        "            self._payloads.delete(tenant, job_id, location)\n"
        "            self._owe(tenant, job_id, location, since=self._clock(), error='none')\n",
    ),
    Mutant(
        "the first message of a job is left to the nudge",
        modules.PUBLISH,
        "            if change.after and (message := dispatch(change.before, change.after, now=now))\n",
        "            if change.before and (message := dispatch(change.before, change.after, now=now))\n",
    ),
    # Limits.
    Mutant(
        "a slot has no end",
        modules.LIMIT,
        "adds={run_name(slot.token): slot.until},",
        "adds={run_name(slot.token): slot.until + KEPT * 9},",
    ),
    Mutant(
        "a slot is taken twice",
        modules.LIMIT,
        'write.conditions.append(f"size({write.name(HELD)}) <= :most")',
        'write.conditions.append(f"size({write.name(HELD)}) <> :most")',
    ),
    Mutant(
        "a limit keeps to one tenant",
        modules.JOB_TYPES,
        "tenant=None if self.limit_spans_tenants else tenant,",
        "tenant=tenant,",
    ),
    Mutant(
        "a slot too many",
        modules.LIMIT,
        "number(limit.concurrency - len(adds) + gone)",
        "number(limit.concurrency + 1 - len(adds) + gone)",
    ),
    Mutant(
        "a rate is ignored",
        modules.LIMIT_STATE,
        "return (rate.count - 1) * interval(rate)",
        "return 99 * interval(rate)",
    ),
    Mutant(
        "a burst is one too large",
        modules.LIMIT_STATE,
        "return (rate.count - 1) * interval(rate)",
        "return rate.count * interval(rate)",
    ),
    Mutant(
        "the first of a rate is free",
        modules.LIMIT,
        "write.set(ARRIVAL, _microseconds(now + interval(rate)))",
        "write.set(ARRIVAL, _microseconds(now))",
    ),
    # Parked jobs.
    Mutant(
        "wake releases no parked job",
        modules.RELEASE,
        "            while lines and in_time():\n",
        "            while lines and not in_time():\n",
    ),
    Mutant(
        "a job is parked before its line is listed",
        modules.LIMITS,
        "elif not _listed_later(slot, state, now):",
        "elif not state:",
    ),
    Mutant(
        "a released job keeps its place in the index",
        modules.OPERATORS,
        'removes=["wait", *ATTENTION] if wait and wait.alone else ATTENTION,',
        'removes=["wait"] if wait and wait.alone else (),',
    ),
    # Clocks and alarms.
    Mutant("a tick forgets its time", modules.PERIODIC, 'key=f"{name} {call.scheduled_at}"', "key=name"),
    Mutant("a tick has no key", modules.PERIODIC, 'type=name, key=f"{name} {call.scheduled_at}"', "type=name"),
    Mutant(
        "reconcile passes groups over",
        modules.RECONCILE,
        "job = self._store.advance(found.tenant, found.group, now=self._clock())",
        "job = None",
    ),
    Mutant(
        "a failure of owed work is the end of it",
        modules.OWED,
        "            with contextlib.suppress(StoreUnavailableError):\n"
        "                self._put_off(owed, error=failed.error)",
        "            self._owed.done(owed)",
    ),
    # Payloads.
    Mutant(
        "a second submission takes the payload of the first",
        modules.SUBMIT,
        "delete_unnamed(stored, None, self._payloads)",
        'delete_unnamed(getattr(refused, "current", None) or stored, None, self._payloads)',
    ),
    Mutant(
        "a conflict means that nothing was written",
        "tidemill.application.unnamed_payloads",
        "        payloads.delete_later(stored)\n",
        "        delete_unnamed(stored, None, payloads)\n",
    ),
    Mutant(
        "an owed deletion does not look at the document",
        modules.OWED,
        "if not names_payload(self._store.get(work.tenant, work.name), work.payload_at):",
        "if self._store.get(work.tenant, work.name) or work.name:",
    ),
    Mutant(
        "payloads stay when their jobs go",
        "tidemill.cdk.stream_settings",
        "(names.TERMINAL_STATES)},\n                names.PAYLOAD_LOCATION_ATTRIBUTE: _THERE",
        '(names.TERMINAL_STATES)},\n                names.PAYLOAD_LOCATION_ATTRIBUTE: {"S": [{"exists": False}]}',
    ),
    Mutant(
        "payloads go when their jobs end",
        modules.PAYLOAD_REACTION,
        "kept = before and after and after.payload_at == before.payload_at",
        "kept = before and after and not after.state.terminal",
    ),
    Mutant(
        "what belongs to no job stays",
        modules.RECONCILE,
        "if payload.stored_at > self._clock() - ORPHANED_AFTER:",
        "if payload.stored_at:",
    ),
)
