"""Faults of batches."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

BATCHED: Final = (
    Mutant(
        "a batch that was closed refuses a close",
        "tidemill.application.batches.batches",
        "close_batch",
        "return batch",
        "raise InvalidPayloadError([])",
    ),
    Mutant("a batch does not close its pages", modules.BATCH_JOB, "run_batch", "members.close(batch)", "batch"),
    Mutant("a batch ends while jobs are live", modules.BATCH_RULES, "Look.at_rest", "not self.live", ""),
    Mutant(
        "a member is not put on a page",
        modules.STORE,
        "DynamoJobStore.insert_if_absent",
        "beside=joins",
        "beside=joins if batch and batch.hops else []",
    ),
    Mutant("a batch succeeds with dead jobs", modules.BATCH_RULES, "Look.failed", "State.DEAD", ""),
    Mutant(
        "a caller's key leads to a callback",
        modules.JOB_IDS,
        "callback_id",
        "str(uuid5(_CALLBACK_IDS, json.dumps(parts)))",
        "submitted_job_id(batch.tenant, f'batch/{batch.id}/{parts[2]}/{name}')",
    ),
    Mutant(
        "callbacks have the ids of follow-up jobs",
        modules.SUBMIT,
        "Submit.prepare_follow_up",
        "submission.callback",
        "None",
    ),
    Mutant(
        "the callback of a failure is dropped",
        modules.BATCH_CALLBACKS,
        "callbacks_at_end",
        "first if called else [*first, *_callback(ON_FAILURE, opened.on_failure)]",
        "[]",
    ),
    Mutant(
        "a redriven batch leaves its dead jobs",
        modules.BATCH_JOB,
        "run_batch",
        "to_redrive(batch, look.jobs.values(), now=look.at)",
        "to_redrive(batch, [])",
    ),
    Mutant("a cancelled batch does not wait for its jobs", modules.BATCH_JOB, "_cancelled", "not unfinished", ""),
    Mutant(
        "a batch ends although it was cancelled during its last run",
        modules.OUTCOMES,
        "settlement",
        "written.state.terminal",
        "not written.state.terminal",
    ),
    Mutant(
        "ended members are counted in one state",
        modules.BATCH_PAGES,
        "_page",
        "{state: _ids(item, state) for state in FINAL_STATES if state in item}",
        "{State.SUCCEEDED: _ids(item, state) for state in FINAL_STATES if state in item}",
    ),
)
