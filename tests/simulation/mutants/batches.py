"""Faults of batches."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

BATCHED: Final = (
    Mutant(
        "a batch that was closed refuses a close",
        "tidemill.application.batches",
        "        return batch\n",
        '        raise InvalidPayloadError([Fault("/id", "the batch was closed before")])\n',
    ),
    Mutant(
        "a batch does not close its pages",
        modules.BATCH_JOB,
        "and members.close(batch):",
        "and batch:",
    ),
    Mutant(
        "a batch ends while jobs are live",
        modules.BATCH_RULES,
        "        return self.complete and not self.live and trusted\n",
        "        return self.complete and trusted\n",
    ),
    Mutant(
        "a member is not put on a page",
        modules.GROUPS,
        "part=Part.BATCH)] if batch else []",
        "part=Part.BATCH)] if batch and batch.hops else []",
    ),
    Mutant(
        "a batch succeeds with dead jobs",
        modules.BATCH_RULES,
        "for state in (State.DEAD, MISSING))",
        "for state in (MISSING,))",
    ),
    Mutant(
        "a caller's key leads to a callback",
        modules.JOB_IDS,
        "    return str(uuid5(_CALLBACK_IDS, json.dumps(parts)))",
        '    return submitted_job_id(batch.tenant, f"batch/{batch.id}/{parts[2]}/{name}")',
    ),
    Mutant(
        "callbacks have the ids of follow-up jobs",
        modules.SUBMIT,
        "callback = submission.name if isinstance(submission, Callback) else None",
        "callback = None",
    ),
    Mutant(
        "the callback of a failure is dropped",
        modules.BATCH_JOB,
        "return BatchFailed(reason, then=first,",
        "return BatchFailed(reason, then=[],",
    ),
    Mutant(
        "a redriven batch leaves its dead jobs",
        modules.BATCH_JOB,
        "    dead = to_redrive(batch, look.jobs.values(), now=look.at)\n",
        "    dead = to_redrive(batch, [])\n",
    ),
    Mutant(
        "a cancelled batch does not wait for its jobs",
        modules.BATCH_JOB,
        "    at_rest = not unfinished and waited.sealed_at",
        "    at_rest = waited.sealed_at",
    ),
    Mutant(
        "a batch ends although it was cancelled during its last run",
        modules.OUTCOMES,
        "    if job.type == BATCH_TYPE and written.state.terminal",
        "    if job.type == BATCH_TYPE and not written.state.terminal",
    ),
    Mutant(
        "ended members are counted in one state",
        modules.BATCH_PAGES,
        "ended={state: _ids(item, state) for state in FINAL_STATES if state in item}",
        "ended={State.SUCCEEDED: _ids(item, state) for state in FINAL_STATES if state in item}",
    ),
)
