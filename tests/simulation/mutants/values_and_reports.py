"""What callers and handlers may send, how runs end, and what functions report."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SHOWN: Final = (
    Mutant(
        "invalid submissions are accepted", modules.SUBMISSION_BODY, "    if found:\n", "    if not found and found:\n"
    ),
    Mutant(
        "a result may be larger",
        "tidemill.application.handler_results",
        "if len(result) > LARGEST_RESULT_BYTES:",
        "if len(result) > 2 * LARGEST_RESULT_BYTES:",
    ),
    Mutant(
        "what a model makes of a payload is hashed",
        modules.SUBMISSION_BODY,
        "        job_type.parse(payload)\n",
        '        value = {**value, "marks": list(getattr(job_type.parse(payload), "marks", []))}\n',
    ),
    Mutant(
        "a payload is validated as Python",
        "tidemill.payload_model",
        "return model.model_validate_json(payload)",
        "return model.model_validate(json.loads(payload))",
    ),
    Mutant(
        "a result may read back as another value",
        "tidemill.application.validation",
        "    require_equal(value, read)\n",
        "",
    ),
    Mutant(
        "the result of a step may read back as another value",
        "tidemill.application.step_result",
        "            require_equal(value, read)\n",
        "",
    ),
    Mutant(
        "a step runs whose result cannot be read back",
        modules.STEPS,
        "            result.require_readable()\n",
        "",
    ),
    Mutant(
        "a result that is not JSON is retried",
        "tidemill.application.handler_results",
        'error_class="ResultError", message=message, death=DeathReason.RESULT_UNSTORABLE',
        'error_class="ResultError", message=message',
    ),
    Mutant(
        "a group of errors is an ordinary failure",
        "tidemill.domain.error_groups",
        "    if not isinstance(error, BaseExceptionGroup):\n        return error\n",
        "    if error:\n        return error\n",
    ),
    Mutant(
        "an error whose text ends the process ends its thread",
        "tidemill.domain.error_text",
        "    except BaseException:",
        "    except Exception:",
    ),
    Mutant(
        "a write that cannot be encoded leaves its job running",
        "tidemill.dynamodb.effects",
        """raise EffectRefusedError(f"the handler's writes cannot be encoded: {error_text(error)}") from error""",
        "raise SystemExit from error",
    ),
    Mutant(
        "a write to a missing table is tried again",
        "tidemill.dynamodb.transactions",
        "return InvalidEffectError if missing and",
        "return InvalidEffectError if not entries and",
    ),
    Mutant(
        "work that is not stored counts as handed over",
        modules.PUBLISH,
        "error, handed_over=False)",
        "error, handed_over=True)",
    ),
    Mutant(
        "the handlers of a process share the fields of their lines",
        "tidemill.telemetry.handler_stream",
        'ContextVar("tidemill_handler_fields", default=None)',
        """(lambda kept: __import__("types").SimpleNamespace(
            get=lambda: kept[-1], set=kept.append, reset=lambda _token: kept.pop()
        ))([None])""",
    ),
    Mutant(
        "a follow-up begins a trace of its own",
        modules.SUBMIT,
        "tenant=parent.tenant, trace=parent.trace,",
        "tenant=parent.tenant, trace=parent.id,",
    ),
    Mutant(
        "the caller's trace context is dropped",
        modules.NEW_RUN,
        "traceparent=traceparent_of(handler_context.trace),",
        "",
    ),
    Mutant(
        "a slot that cannot be given back undoes the run",
        modules.RELEASE,
        "        with suppress(TidemillError):\n            if line_stands",
        "        with suppress(ValueError):\n            if line_stands",
    ),
    Mutant(
        "the time between nudges stays",
        modules.NUDGE,
        "doubled = self._limit * 2.0 ** min(job.nudges, MOST_NUDGES)",
        "doubled = self._limit",
    ),
    Mutant(
        "a lease is reported as early",
        modules.VERDICT,
        "return ClaimVerdict.EARLY if current.owner is None else ClaimVerdict.LEASED",
        "return ClaimVerdict.EARLY",
    ),
    Mutant(
        "each job is cancelled before it runs",
        modules.OUTCOMES,
        "    if job.cancel_requested_at:\n        return Stopped()",
        "    if True:\n        return Stopped()",
    ),
    Mutant(
        "an outage is recorded as another version",
        modules.GATES,
        "held_below(ceiling_seconds, HoldCause.OUTAGE)",
        "held_below(ceiling_seconds, HoldCause.VERSION)",
    ),
    Mutant(
        "a hold of another version is long at once",
        modules.GATES,
        "held_below(min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS), HoldCause.VERSION)",
        "held_below(LONGEST_VERSION_HOLD_SECONDS, HoldCause.VERSION)",
    ),
    Mutant("wake reports the time since, not the lead", modules.WAKE, "(job.due - began for", "(began - job.due for"),
    Mutant(
        "wake reports each call as unfinished", modules.WAKE, "        finished = True\n", "        finished = False\n"
    ),
    Mutant(
        "an undeliverable job is reported as nudged",
        modules.NUDGE,
        "return Nudge.UNDELIVERABLE if last else Nudge.NUDGED",
        "return Nudge.NUDGED",
    ),
    Mutant(
        "owed work is tried each minute",
        modules.OWED,
        "_FIRST_PAUSE * 2.0 ** min(owed.tries, _MOST_DOUBLINGS)",
        "_FIRST_PAUSE",
    ),
    Mutant("publish counts no failure of owed work", modules.OWED_ITEMS, '":one": number(1)', '":one": number(0)'),
    Mutant("owed work is never overdue", modules.OWED, ">= PATIENCE else None", ">= PATIENCE * 999 else None"),
    Mutant(
        "a purge takes jobs of every type",
        "tidemill.application.job_filter",
        "(not self.types or job.type in self.types)",
        "True",
    ),
    Mutant(
        "a redrive takes jobs with other ids",
        "tidemill.application.job_filter",
        "(not self.ids or job_id in self.ids)",
        "True",
    ),
    Mutant(
        "the delay of a submission is not part of its body",
        modules.SUBMISSION_BODY,
        '        "delay": delay.total_seconds() if delay else None,\n',
        "",
    ),
)
