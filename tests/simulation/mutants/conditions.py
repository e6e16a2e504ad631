"""Each clause of each condition, dropped, and what a write must set or remove besides, forgotten."""

import re
from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant


def _always(name: str, module: str, function: str, clause: str) -> Mutant:
    """`clause` holds always. The names in it stay in use, because DynamoDB refuses names that nothing uses."""
    attribute = re.findall(r"#\w+", clause)[0]
    always = f"({clause} OR attribute_exists({attribute}) OR attribute_not_exists({attribute}))"
    return Mutant(name, module, function, repr(clause), repr(always))


CLAUSES: Final = (
    # Conditions.
    _always("wake what was put off since", modules.OPERATORS, "wake", "#generation = :generation"),
    _always("nudge what has moved on", modules.OPERATORS, "nudge", "#state = :state"),
    _always(
        "nudge twice at once",
        modules.OPERATORS,
        "nudge",
        "(attribute_not_exists(#nudged_at) OR #nudged_at <= :overdue)",
    ),
    _always("redrive another death", modules.OPERATORS, "redrive", "#generation = :generation"),
    _always(
        "redrive what is past its time",
        modules.OPERATORS,
        "redrive",
        "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
    ),
    _always("act on a later job of the key", modules.OPERATORS, "_update_as_read", "#created_at = :created_at"),
    Mutant(
        "purge deletes a job in any state",
        modules.OPERATORS,
        "forget",
        "'#generation = :generation AND #finished_at = :finished_at'",
        "'#generation = :generation AND (#finished_at = :finished_at OR #finished_at <> :finished_at OR "
        "attribute_not_exists(#finished_at))'",
    ),
    Mutant(
        "a group is made twice",
        modules.GROUP_ITEMS,
        "_unchanged",
        "'attribute_not_exists(#version)'",
        "'(attribute_not_exists(#version) OR attribute_exists(#version))'",
    ),
    # What a write sets or removes.
    Mutant("the time of the claim is not kept", modules.WRITES, "claimed", "'claimed_at': milliseconds(now)", ""),
    Mutant("nudges are counted for ever", modules.WRITES, "claim", "'nudges', *ATTENTION", "*ATTENTION"),
    Mutant(
        "a hold by another cause forgets the outages before it",
        modules.OUTCOMES,
        "_held",
        "BOUNDED - {cause}",
        "BOUNDED - {cause, HoldCause.OUTAGE}",
    ),
    Mutant("holds are not counted", modules.HOLD_WRITES, "hold", "settlement.holds", "1"),
    Mutant("holds are counted for ever", modules.HOLD_WRITES, "hold", "HOLD_ATTRIBUTES", "HOLD_ATTRIBUTES[1:]"),
    Mutant("a crash is reported twice", modules.HOLD_WRITES, "hold", "'open_runs', 'wait'", "'wait'"),
    Mutant("a hold ends the suspicion", modules.HOLD_WRITES, "hold", "open_runs_after(job, settlement)", "0"),
    Mutant("a release is a crash", modules.WRITES, "release", "job.lease.open_runs - 1", "job.lease.open_runs"),
    Mutant(
        "an unclaim is a crash",
        modules.WRITES,
        "unclaim",
        "'#open_runs = #open_runs - :one'",
        "'#open_runs = #open_runs'",
    ),
    Mutant(
        "a snooze forgets a crash",
        modules.OUTCOMES,
        "new_errors",
        "written.holds",
        "written.error is None and (not written.state.terminal)",
    ),
    Mutant(
        "checkpoints are not kept", modules.RUN_WRITES, "checkpoint", "sets['checkpoint'] = text(saved.state)", "pass"
    ),
    Mutant(
        "progress is not kept", modules.RUN_WRITES, "checkpoint", "sets['progress_done'] = number(saved.done)", "pass"
    ),
    Mutant("a continuation begins anew", modules.WRITES, "_outcome", "'checkpoint'", ""),
    Mutant("releases are not counted", modules.WRITES, "release", "job.lease.releases + 1", "job.lease.releases"),
    Mutant("a claim taken back stays taken", modules.WRITES, "unclaim", "'due': milliseconds(now)", ""),
    Mutant(
        "a dead job that blocks its group may expire",
        modules.WRITES,
        "ended",
        "state is State.DEAD and job.group.blocks and job.group.key",
        "state is State.WAITING",
    ),
    Mutant(
        "all are kept for as long as any", modules.WRITES, "ended", "job.lifetime.retention or retention", "retention"
    ),
    Mutant("jobs are not listed", modules.INDEXES, "Indexes.listing", "self.listed", "not self.listed"),
    Mutant("the cancelled keep their death", modules.OPERATORS, "cancel", "'death', 'wait'", "'wait'"),
    Mutant("nudges are not counted", modules.OPERATORS, "nudge", "'nudges': number(job.nudges.count + 1)", ""),
    Mutant("a lost run stays lost", modules.OPERATORS, "nudge", "sets['state'] = text(State.RETRYING)", "pass"),
    Mutant(
        "redrives are not recorded",
        modules.OPERATORS,
        "redrive",
        "(*job.redrives, entry)[-ERRORS_KEPT:]",
        "job.redrives",
    ),
    Mutant("redrive keeps the hops", modules.OPERATORS, "redrive", "'hops', 'deadline'", "'deadline'"),
    Mutant("redrive keeps a request to end", modules.OPERATORS, "redrive", "'cancel_requested_at'", ""),
    Mutant(
        "places stay",
        modules.GROUPS,
        "DynamoGroups._step",
        "cleared.append(self._entry('Delete', group_items.delete_position(head, sequence)))",
        "pass",
    ),
    Mutant(
        "a waiting job loses its requested time",
        modules.GROUPS,
        "DynamoGroups._step",
        "max(job.run_at or now, now)",
        "now",
    ),
    Mutant("a group goes too far", modules.GROUPS, "DynamoGroups.advance", "not further", "further"),
    Mutant("one error stops the stream", modules.PUBLISH, "Publisher._take", "Exception", "()"),
    # Nudges.
    Mutant(
        "an undeliverable job is never given up",
        modules.NUDGE,
        "Nudger.nudge",
        "job.state is not State.RUNNING and _given_up(job, now)",
        "False",
    ),
    # Runs.
    Mutant(
        "a claim without an answer stays",
        modules.RUN,
        "Attempt.claim",
        "with contextlib.suppress(StoreUnavailableError, TransactionConflictError, WriteRefusedError):\n"
        "    self._context.store.unclaim(self.reference, token=token, now=now)",
        "with contextlib.suppress(StoreUnavailableError, TransactionConflictError, WriteRefusedError):\n    pass",
    ),
    Mutant(
        "a suspected job runs beside others",
        modules.PROCESS_GATES,
        "SuspectGate.enter",
        "run.job.suspect and (not held_enough)",
        "False",
    ),
    Mutant(
        "types have no time of their own",
        modules.TYPE_GATES,
        "TimeGate.enter",
        "run.job_type.timeout",
        "None",
    ),
    Mutant("an outage is the job's failure", modules.ATTEMPT_HOLDS, "held_for_outage", "MOST_HOLDS_OF_AN_OUTAGE", "0"),
    Mutant("a settle is put together twice", modules.SETTLE, "Settler._settle_as", "return report", "pass"),
    Mutant(
        "a cancel request fences the run",
        modules.SETTLE,
        "_instead",
        "current.cancel.requested_at and (not isinstance(outcome, Stopped))",
        "False",
    ),
    Mutant(
        "conflicts count at once", modules.SETTLE, "Settler._settle_as", "job.lease.releases >= MOST_RELEASES", "True"
    ),
    Mutant(
        "a transaction that cannot be is an outage",
        modules.SETTLE,
        "Settler._settle_as",
        "(EffectRefusedError, KeyReusedError, TransactionTooLargeError)",
        "TransactionTooLargeError",
    ),
)
