"""Faults of restore and recovery, each of which a check of the scenarios must catch."""

from typing import Final

from tests.simulation.mutants.apply import Mutant

_MESSAGES: Final = "tidemill.sqs.messages"
_RECOVER: Final = "tidemill.application.restore.recover"

MUTANTS: Final = (
    Mutant(
        "a worker takes messages from before the restore",
        _MESSAGES,
        "decode",
        "(sent_in := int(wire.get('epoch', 0))) != epoch",
        "(sent_in := int(wire.get('epoch', 0))) > epoch",
    ),
    Mutant(
        "a worker from before the restore takes messages from after it",
        _MESSAGES,
        "decode",
        "(sent_in := int(wire.get('epoch', 0))) != epoch",
        "(sent_in := int(wire.get('epoch', 0))) < epoch",
    ),
    Mutant(
        "a worker from before the restore deletes messages from after it",
        "tidemill.worker.message_run",
        "_report_on_unread",
        "error.later",
        "not error.later",
    ),
    Mutant("publish leaves the epoch out", "tidemill.sqs.lanes", "_entry", "epoch=epoch", ""),
    Mutant(
        "publish sends what another table says",
        "tidemill.entrypoints.publish",
        "_published",
        "stream.of_another_table(event, setting(Env.JOBS_TABLE))",
        "stream.of_another_table(event, setting(Env.JOBS_TABLE)) and (not event)",
    ),
    Mutant(
        "a recovery gives no run back",
        _RECOVER,
        "Recoverer._dispatch",
        "fate is Fate.GIVEN_BACK",
        "fate is Fate.GIVEN_BACK and False",
    ),
    Mutant(
        "a recovery sends no message",
        _RECOVER,
        "Recoverer._dispatch",
        "fate in {Fate.DISPATCHED, Fate.DEAD}",
        "fate is Fate.DEAD",
    ),
    Mutant(
        "a recovery sends no DLQ message",
        _RECOVER,
        "Recoverer._dispatch",
        "fate in {Fate.DISPATCHED, Fate.DEAD}",
        "fate is Fate.DISPATCHED",
    ),
    Mutant("a run at the restore point is not reported", _RECOVER, "Recoverer._ran", "job.state is State.RUNNING", ""),
    Mutant(
        "a run since the restore point is not reported",
        _RECOVER,
        "ran_since",
        "former.lease.claimed_at != restored.lease.claimed_at",
        "",
    ),
    Mutant(
        "a job whose document is gone is not reported",
        _RECOVER,
        "ran_since",
        "former is None or former.created_at != restored.created_at"
        " or former.lease.claimed_at != restored.lease.claimed_at",
        "former is not None and former.lease.claimed_at != restored.lease.claimed_at",
    ),
    Mutant("missing jobs are not looked for", _RECOVER, "missing", "(job.tenant, job.id) not in there", "not there"),
    Mutant(
        "the epoch stays",
        _RECOVER,
        "recovery_of",
        "max(found.epoch if found else 0, deployed_epoch) + 1",
        "max(found.epoch if found else 0, deployed_epoch)",
    ),
    # Each repeat of the command ends there, and the jobs behind the group in the scan get no message.
    Mutant(
        "a recovery ends at a group whose head cannot be read",
        _RECOVER,
        "Recoverer._advance",
        "MalformedDocumentError",
        "WriteRefusedError",
    ),
)
