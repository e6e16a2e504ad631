"""Log lines that come late, or not at all."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

LINES: Final = (
    Mutant("a claim has no line", modules.RUN, "Attempt.claim", "self._hooks.observer.claimed(job)", ""),
    Mutant(
        "a settle has no line", modules.SETTLE, "Settler._observed", "self._observer.ended(self._reference, report)", ""
    ),
    Mutant(
        "lines are written at the end of the batch",
        modules.WORKER,
        "Worker.work",
        "batch = Batch(self.settings, invocation, run_lines, spoiled=self.process_state.is_spoiled)\n"
        "self.process_state.remember()\n"
        "with batch(records=event['Records'], handler=batch.require_done):\n"
        "    batch.process()",
        "late = type('Late', (list,), {'claimed': lambda _, job: run_lines.claimed(job), 'ended': "
        "lambda self, *end: self.append(end)})()\n"
        "batch = Batch(self.settings, invocation, late, spoiled=self.process_state.is_spoiled)\n"
        "self.process_state.remember()\n"
        "with batch(records=event['Records'], handler=batch.require_done):\n"
        "    batch.process()\n"
        "for end in late:\n"
        "    run_lines.ended(*end)",
    ),
    Mutant(
        "the line of a settle has no metrics",
        modules.RUN_LINES,
        "RunLines.ended",
        "fields | _why(report) | metrics",
        "fields | _why(report)",
    ),
)
