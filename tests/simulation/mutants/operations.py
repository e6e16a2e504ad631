"""What holds jobs back, looks after them, and keeps what is too large for a document."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

OPERATION: Final = (
    # Operators.
    Mutant(
        "cancel ends a run that is not its own",
        modules.OPERATORS,
        "cancel",
        "_states(AT_REST)",
        "_states({*AT_REST, State.RUNNING})",
    ),
    Mutant("a cancelled job stays due", modules.OPERATORS, "cancel", "'due', 'death'", "'death'"),
    Mutant(
        "a request to end sticks to the next run",
        modules.OPERATORS,
        "request_cancel",
        "'#state = :running'",
        "'(#state = :running OR attribute_exists(#state))'",
    ),
    Mutant(
        "wake ignores the state",
        modules.OPERATORS,
        "wake",
        "'#state = :scheduled'",
        "'(#state = :scheduled OR attribute_exists(#state))'",
    ),
    Mutant(
        "redrive ignores the state",
        modules.OPERATORS,
        "redrive",
        "f\"#state IN ({', '.join(redrivable)})\"",
        "f\"(#state IN ({', '.join(redrivable)}) OR attribute_exists(#state))\"",
    ),
    Mutant("redrive keeps the TTL", modules.OPERATORS, "redrive", "TTL_ATTRIBUTE, 'finished_at'", "'finished_at'"),
    Mutant("redrive keeps the generation", modules.OPERATORS, "redrive", "number(1)", "number(0)"),
    Mutant("redrive keeps the attempts", modules.OPERATORS, "redrive", "number(0)", "number(job.attempt)"),
    Mutant("redrive keeps the age", modules.OPERATORS, "redrive", "'useful_until'", ""),
    Mutant("redrive keeps the deadline", modules.OPERATORS, "redrive", "'deadline'", ""),
    Mutant(
        "nudge takes a live lease",
        modules.OPERATORS,
        "nudge",
        "'#due <= :overdue'",
        "'(#due <= :overdue OR attribute_exists(#due))'",
    ),
    Mutant("nudge leaves the owner", modules.OPERATORS, "nudge", "['owner']", "[]"),
    # Redrives with probes.
    Mutant(
        "a probe that died again counts as a success",
        "tidemill.application.control.redrive_probes",
        "verdict_of",
        "current.state is State.SUCCEEDED",
        "current.state.terminal",
    ),
    Mutant(
        "jobs follow a probe that did not succeed",
        "tidemill.application.control.redrive_probes",
        "Probes.approved",
        "probe.verdict is ProbeVerdict.SUCCEEDED",
        "",
    ),
    # Groups.
    Mutant("a group forgets its order", modules.GROUP_ITEMS, "Order.joined_by", "state=State.WAITING, due=None", ""),
    Mutant(
        "a group is not read again",
        modules.GROUP_ITEMS,
        "_unchanged",
        "'#version = :read'",
        "'(#version = :read OR attribute_exists(#version))'",
    ),
    Mutant(
        "a group goes on past the living",
        modules.GROUPS,
        "DynamoGroups._waits_for_head",
        "not job.state.terminal or (job.state is State.DEAD and job.group.blocks)",
        "False",
    ),
    Mutant(
        "a group skips a dead job that blocks it",
        modules.GROUPS,
        "DynamoGroups._waits_for_head",
        "not job.state.terminal or (job.state is State.DEAD and job.group.blocks)",
        "not job.state.terminal",
    ),
    Mutant(
        "a turn is given to the cancelled",
        modules.GROUP_ITEMS,
        "become_head",
        "'#state = :waiting'",
        "'(#state = :waiting OR attribute_exists(#state))'",
    ),
    Mutant(
        "a place is lost",
        modules.GROUPS,
        "DynamoGroups._position",
        "[self._entry('Put', group_items.put_position(job))] if job.state is State.WAITING else []",
        "[]",
    ),
    Mutant(
        "a first tail does not meet the head",
        modules.GROUPS,
        "DynamoGroups._write",
        "order.head is not None",
        "order.head is not None and order.tail is None",
    ),
    Mutant(
        "an idle group keeps its tail",
        modules.GROUPS,
        "DynamoGroups._leave",
        "if tail is not None:\n    entries.append(self._entry('Delete', group_items.delete_tail(tail)))",
        "if tail is None:\n    entries.append(self._entry('Delete', group_items.delete_tail(tail)))",
    ),
    # Owed work.
    Mutant(
        "owed work is never done",
        modules.OWED,
        "OwedRunner._try",
        "self._store.advance(owed.work.tenant, owed.work.name, now=self._clock())",
        "None",
    ),
    Mutant(
        "a running job needs no message",
        modules.OWED,
        "OwedRunner._dispatch",
        "job and job.state is State.RUNNING and (not self._nudger.nudge(job))",
        "False",
    ),
    Mutant(
        "a message is owed and not sent",
        modules.OWED,
        "OwedRunner._resent",
        "self._store.resend(job, now=self._clock())",
        "pass",
    ),
    Mutant(
        "the deletion of a payload is not stored",
        modules.PUBLISH,
        "Publisher._take",
        "return self._hand_over(step.sequence, step.name, step.work, error_text(error))",
        "if step.name is PublishStep.DELETE:\n"
        "    return FailedStep(step.sequence, step.name, step.work, error_text(error), "
        "handed_over=True)\n"
        "return self._hand_over(step.sequence, step.name, step.work, error_text(error))",
    ),
    Mutant(
        "the deletion of a payload is dropped",
        modules.OWED,
        "OwedRunner._delete_unnamed",
        "self._payloads.delete(work.tenant, work.name, work.payload_at)",
        "pass",
    ),
    Mutant(
        "only publish owes the deletion of a payload",
        modules.OWING_PAYLOADS,
        "OwingPayloads.delete",
        "self._owe(tenant, job_id, location, since=self._clock(), error=error_text(failed))",
        "raise",
    ),
    # Repairs that nothing needs, or that do what a step forgot.
    Mutant(
        "each deletion of a payload is owed as well",
        modules.OWING_PAYLOADS,
        "OwingPayloads.delete",
        "self._payloads.delete(tenant, job_id, location)",
        "self._payloads.delete(tenant, job_id, location)\n"
        "self._owe(tenant, job_id, location, since=self._clock(), error='none')",
    ),
    Mutant(
        "the first message of a job is left to the nudge",
        modules.PUBLISH,
        "Publisher._due_messages",
        "change.after, (message := dispatch(change.before, change.after, now=now))",
        "change.before, (message := dispatch(change.before, change.after, now=now))",
    ),
    # Limits.
    Mutant("a slot has no end", modules.LIMIT, "enter", "slot.until", "slot.until + KEPT * 9"),
    Mutant(
        "a slot is taken twice",
        modules.LIMIT,
        "_change_slots",
        "f'size({write.name(HELD)}) <= :most'",
        "f'size({write.name(HELD)}) <> :most'",
    ),
    Mutant(
        "a limit keeps to one tenant",
        modules.JOB_TYPES,
        "JobType.limit_line",
        "None if self.limit_spans_tenants else tenant",
        "tenant",
    ),
    Mutant(
        "a slot too many",
        modules.LIMIT,
        "_change_slots",
        "limit.concurrency - len(adds)",
        "limit.concurrency + 1 - len(adds)",
    ),
    Mutant("a rate is ignored", modules.LIMIT_STATE, "burst", "rate.count - 1", "99"),
    Mutant("a burst is one too large", modules.LIMIT_STATE, "burst", "rate.count - 1", "rate.count"),
    Mutant("the first of a rate is free", modules.LIMIT, "_start", "now + interval(rate)", "now"),
    # Parked jobs.
    Mutant("wake releases no parked job", modules.RELEASE, "Releaser.release_all", "in_time()", "not in_time()"),
    Mutant(
        "a job is parked before its line is listed",
        modules.LIMITS,
        "DynamoLimits._wait",
        "_listed_later(slot, state, now)",
        "state",
    ),
    Mutant(
        "a released job keeps its place in the index",
        modules.OPERATORS,
        "unpark",
        "['wait', *ATTENTION] if wait and wait.alone else ATTENTION",
        "['wait'] if wait and wait.alone else ()",
    ),
    # Clocks and alarms.
    Mutant("a tick forgets its time", modules.PERIODIC, "submission", "f'{name} {call.scheduled_at}'", "name"),
    Mutant("a tick has no key", modules.PERIODIC, "submission", "key=f'{name} {call.scheduled_at}'", ""),
    Mutant(
        "reconcile passes groups over",
        modules.RECONCILE,
        "Reconciler._repair",
        "self._store.advance(found.tenant, found.group, now=self._clock())",
        "None",
    ),
    Mutant(
        "a failure of owed work is the end of it",
        modules.OWED,
        "OwedRunner._try",
        "with contextlib.suppress(StoreUnavailableError):\n    self._put_off(owed, error=failed.error)",
        "self._owed.done(owed)",
    ),
    # Payloads.
    Mutant(
        "a second submission takes the payload of the first",
        modules.NEW_JOBS,
        "NewJobs.insert",
        "stored, None",
        "getattr(refused, 'current', None) or stored, None",
    ),
    Mutant(
        "a conflict means that nothing was written",
        "tidemill.application.submission.unnamed_payloads",
        "deleted_on_conflict",
        "payloads.delete_later(stored)",
        "delete_unnamed(stored, None, payloads)",
    ),
    Mutant(
        "an owed deletion does not look at the document",
        modules.OWED,
        "OwedRunner._delete_unnamed",
        "not names_payload(self._store.get(work.tenant, work.name), work.payload_at)",
        "self._store.get(work.tenant, work.name) or work.name",
    ),
    Mutant(
        "payloads stay when their jobs go",
        "tidemill.cdk.events.stream_settings",
        "",
        "names.STATE_ATTRIBUTE: {'S': list(names.TERMINAL_STATES)}, names.PAYLOAD_LOCATION_ATTRIBUTE: _THERE",
        "names.STATE_ATTRIBUTE: {'S': list(names.TERMINAL_STATES)}, names.PAYLOAD_LOCATION_ATTRIBUTE: "
        "{'S': [{'exists': False}]}",
    ),
    Mutant(
        "payloads go when their jobs end",
        modules.PAYLOAD_REACTION,
        "_deleted",
        "after.payload.location == before.payload.location",
        "not after.state.terminal",
    ),
    Mutant(
        "what belongs to no job stays",
        modules.RECONCILE,
        "Reconciler._discard",
        "payload.stored_at > self._clock() - ORPHANED_AFTER",
        "payload.stored_at",
    ),
)
