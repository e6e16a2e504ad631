"""What callers and handlers may send, how runs end, and what functions report."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SHOWN: Final = (
    Mutant(
        "invalid submissions are accepted",
        modules.CHECKED_SUBMISSION,
        "read_sound_payload",
        "if found:\n    raise InvalidPayloadError(found)",
        "if not found and found:\n    raise InvalidPayloadError(found)",
    ),
    Mutant(
        "a result may be larger",
        "tidemill.application.attempt.handler_results",
        "_done",
        "len(result) > LARGEST_RESULT_BYTES",
        "len(result) > 2 * LARGEST_RESULT_BYTES",
    ),
    Mutant(
        "what a model makes of a payload is hashed",
        modules.CHECKED_SUBMISSION,
        "read_sound_payload",
        "job_type.parse(payload)",
        "value = {**value, 'marks': list(getattr(job_type.parse(payload), 'marks', []))}",
    ),
    Mutant(
        "a payload is validated as Python",
        "tidemill.declarations.payload_model",
        "parser.parse",
        "model.model_validate_json(payload)",
        "model.model_validate(json.loads(payload))",
    ),
    Mutant(
        "a result may read back as another value",
        "tidemill.application.submission.validation",
        "stored_json",
        "require_equal(value, read)",
        "",
    ),
    Mutant(
        "the result of a step may read back as another value",
        "tidemill.application.steps.step_result",
        "StepResult.read_back",
        "require_equal(value, read)",
        "",
    ),
    Mutant(
        "a step runs whose result cannot be read back", modules.STEPS, "Steps._take", "result.require_readable()", ""
    ),
    Mutant(
        "a result that is not JSON is retried",
        "tidemill.application.attempt.handler_results",
        "_unstorable",
        "death=DeathReason.RESULT_UNSTORABLE",
        "",
    ),
    Mutant(
        "a group of errors is an ordinary failure",
        "tidemill.domain.attempt.error_groups",
        "decisive",
        "not isinstance(error, BaseExceptionGroup)",
        "error",
    ),
    Mutant(
        "an error whose text ends the process ends its thread",
        "tidemill.domain.error_text",
        "text_of",
        "BaseException",
        "Exception",
    ),
    Mutant(
        "a write that cannot be encoded leaves its job running",
        "tidemill.dynamodb.attempt.effects",
        "entries",
        'EffectRefusedError(f"the handler\'s writes cannot be encoded: {error_text(error)}")',
        "SystemExit",
    ),
    Mutant(
        "a write to a missing table is tried again",
        "tidemill.dynamodb.transactions",
        "_refusal",
        "missing, any((entry.part is Part.EFFECT for entry in entries))",
        "not entries, any((entry.part is Part.EFFECT for entry in entries))",
    ),
    Mutant(
        "work that is not stored counts as handed over",
        modules.PUBLISH,
        "Publisher._hand_over",
        "handed_over=False",
        "handed_over=True",
    ),
    Mutant(
        "the handlers of a process share the fields of their lines",
        "tidemill.telemetry.handler_stream",
        "",
        "ContextVar('tidemill_handler_fields', default=None)",
        "(lambda kept: __import__('types').SimpleNamespace(get=lambda: kept[-1], set=kept.append, "
        "reset=lambda _token: kept.pop()))([None])",
    ),
    Mutant(
        "a follow-up begins a trace of its own", modules.SUBMIT, "Submit.prepare_follow_up", "parent.trace", "parent.id"
    ),
    Mutant(
        "the caller's trace context is dropped",
        modules.NEW_RUN,
        "new_run",
        "traceparent=traceparent_of(handler_context.trace)",
        "",
    ),
    Mutant(
        "a slot that cannot be given back undoes the run",
        modules.RELEASE,
        "Releaser.leave",
        "TidemillError",
        "ValueError",
    ),
    Mutant(
        "the time between nudges stays",
        modules.NUDGE,
        "Nudger._allowed_delay",
        "self._limit * 2.0 ** min(job.nudges.count, MOST_NUDGES)",
        "self._limit",
    ),
    Mutant(
        "a lease is reported as early",
        modules.VERDICT,
        "judge",
        "ClaimVerdict.EARLY if current.lease.owner is None else ClaimVerdict.LEASED",
        "ClaimVerdict.EARLY",
    ),
    Mutant(
        "each job is cancelled before it runs",
        modules.OUTCOMES,
        "outcome_before_run",
        "job.cancel.requested_at",
        "True",
    ),
    Mutant(
        "an outage is recorded as another version",
        modules.ATTEMPT_HOLDS,
        "held_for_outage",
        "ceiling_seconds, HoldCause.OUTAGE",
        "ceiling_seconds, HoldCause.VERSION",
    ),
    Mutant(
        "a hold of another version is long at once",
        modules.ATTEMPT_HOLDS,
        "left_to_another_version",
        "min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS)",
        "LONGEST_VERSION_HOLD_SECONDS",
    ),
    Mutant(
        "wake reports the time since, not the lead", modules.WAKE, "Waker.wake", "job.due - began", "began - job.due"
    ),
    Mutant("wake reports each call as unfinished", modules.WAKE, "Waker.wake", "finished = True", "finished = False"),
    Mutant(
        "an undeliverable job is reported as nudged",
        modules.NUDGE,
        "Nudger.nudge",
        "Nudge.UNDELIVERABLE if last else Nudge.NUDGED",
        "Nudge.NUDGED",
    ),
    Mutant(
        "owed work is tried each minute",
        modules.OWED,
        "OwedRunner._put_off",
        "_FIRST_PAUSE * 2.0 ** min(owed.tries, _MOST_DOUBLINGS)",
        "_FIRST_PAUSE",
    ),
    Mutant(
        "publish counts no failure of owed work", modules.OWED_ITEMS, "DynamoOwedWork.owe", "number(1)", "number(0)"
    ),
    Mutant(
        "owed work is never overdue",
        modules.OWED,
        "OwedRunner._if_overdue",
        "self._clock() - owed.since >= PATIENCE",
        "self._clock() - owed.since >= PATIENCE * 999",
    ),
    Mutant(
        "a purge takes jobs of every type",
        "tidemill.application.job_filter",
        "JobFilter.__contains__",
        "not self.types or job.type in self.types",
        "True",
    ),
    Mutant(
        "a redrive takes jobs with other ids",
        "tidemill.application.job_filter",
        "JobFilter.fits_key",
        "not self.ids or job_id in self.ids",
        "True",
    ),
    Mutant(
        "the delay of a submission is not part of its body",
        modules.CHECKED_SUBMISSION,
        "body_of",
        "'delay': delay.total_seconds() if delay else None",
        "",
    ),
)
