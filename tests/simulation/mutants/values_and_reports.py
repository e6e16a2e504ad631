"""What callers and handlers may send, how runs end, and what functions report."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SHOWN: Final = (
    Mutant("invalid submissions are accepted", modules.SUBMIT, "    if found:\n", "    if not found and found:\n"),
    Mutant(
        "a result may be larger",
        "tidemill.application.handler_results",
        "if len(result) > LARGEST_RESULT_BYTES:",
        "if len(result) > 2 * LARGEST_RESULT_BYTES:",
    ),
    Mutant(
        "a result that is not JSON is retried",
        "tidemill.application.handler_results",
        'error_class="ResultError", message=message, death=DeathReason.RESULT_UNSTORABLE',
        'error_class="ResultError", message=message',
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
        "return Verdict.EARLY if current.owner is None else Verdict.LEASED",
        "return Verdict.EARLY",
    ),
    Mutant(
        "each job is cancelled before it runs",
        modules.OUTCOMES,
        "    if job.cancel_requested_at:\n        return Stopped()",
        "    if True:\n        return Stopped()",
    ),
)
