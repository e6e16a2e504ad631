"""Faults of restore and recovery, each of which a check of the scenarios must catch."""

from typing import Final

from tests.simulation.mutants.apply import Mutant

_MESSAGES: Final = "tidemill.sqs.messages"
_RECOVER: Final = "tidemill.application.recover"

MUTANTS: Final = (
    Mutant(
        "a worker takes messages from before the restore",
        _MESSAGES,
        'if (sent_in := int(wire.get("epoch", 0))) != epoch:',
        'if (sent_in := int(wire.get("epoch", 0))) > epoch:',
    ),
    Mutant(
        "a worker from before the restore takes messages from after it",
        _MESSAGES,
        'if (sent_in := int(wire.get("epoch", 0))) != epoch:',
        'if (sent_in := int(wire.get("epoch", 0))) < epoch:',
    ),
    Mutant(
        "a worker from before the restore deletes messages from after it",
        "tidemill.worker.message_run",
        "isinstance(error, OtherEpochError) and error.later:",
        "isinstance(error, OtherEpochError) and not error.later:",
    ),
    Mutant("publish leaves the epoch out", "tidemill.sqs.lanes", "dispatch.body, epoch=epoch)", "dispatch.body)"),
    Mutant(
        "publish sends what another table says",
        "tidemill.entrypoints.publish",
        "if stream.of_another_table(event, setting(Env.JOBS_TABLE)):",
        "if stream.of_another_table(event, setting(Env.JOBS_TABLE)) and not event:",
    ),
    Mutant(
        "a recovery gives no run back", _RECOVER, "if fate is Fate.GIVEN_BACK:", "if fate is Fate.GIVEN_BACK and False:"
    ),
    Mutant(
        "a recovery sends no message", _RECOVER, "elif fate in {Fate.DISPATCHED, Fate.DEAD}:", "elif fate is Fate.DEAD:"
    ),
    Mutant(
        "a recovery sends no DLQ message",
        _RECOVER,
        "elif fate in {Fate.DISPATCHED, Fate.DEAD}:",
        "elif fate is Fate.DISPATCHED:",
    ),
    Mutant("a run at the restore point is not reported", _RECOVER, "if job.state is State.RUNNING or ", "if "),
    Mutant(
        "a run since the restore point is not reported",
        _RECOVER,
        " or former.claimed_at != restored.claimed_at",
        "",
    ),
    Mutant(
        "a job whose document is gone is not reported",
        _RECOVER,
        "former is None or former.created_at != restored.created_at or",
        "former is not None and",
    ),
    Mutant("missing jobs are not looked for", _RECOVER, "if (job.tenant, job.id) not in there]", "if not there]"),
    Mutant(
        "the epoch stays",
        _RECOVER,
        "epoch = max(found.epoch if found else 0, deployed_epoch) + 1",
        "epoch = max(found.epoch if found else 0, deployed_epoch)",
    ),
    # Each repeat of the command ends there, and the jobs behind the group in the scan get no message.
    Mutant(
        "a recovery ends at a group whose head cannot be read",
        _RECOVER,
        "        except MalformedDocumentError:\n",
        "        except WriteRefusedError:\n",
    ),
)
