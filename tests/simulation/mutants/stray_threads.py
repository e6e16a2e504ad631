"""Threads that outlive their run, and what a process keeps of a run."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

STRAYS: Final = (
    Mutant("a stray thread keeps its process", modules.WORKER, "Worker.work", "self.end_process()", "pass"),
    Mutant(
        "a process with closed streams lives on",
        modules.WORKER,
        "Worker.work",
        "batch.strays() or changes.lost",
        "batch.strays()",
    ),
    Mutant(
        "a handler begins in a process with closed streams",
        modules.BATCH,
        "Batch.process",
        "self._spoiled() or bool(self.strays())",
        "bool(self.strays())",
    ),
    Mutant(
        "a worker restores nothing of its process",
        "tidemill.system.process_state",
        "ProcessState.restore",
        "with suppress(Exception):\n"
        "    part.restore(before)\n"
        "(restored if part.same(before, _read(part)) else lost).append(part.name)",
        "with suppress(Exception):\n    pass\nrestored.append(part.name)",
    ),
    Mutant(
        "a stray thread ends the batch",
        modules.BATCH,
        "Batch._run",
        "not future.done() and message not in late",
        "not future.done() and message not in late and not self.strays()",
    ),
    Mutant(
        "a worker exits in the middle of its calls", modules.WORKER, "Worker.work", "batch.await_other_threads()", ""
    ),
    Mutant(
        "a worker that exits deletes its whole batch",
        modules.WORKER,
        "Worker.work",
        "for receipt, until in put_back.items() if not until",
        "for receipt in put_back",
    ),
    Mutant(
        "a worker that exits hides the rest",
        modules.WORKER,
        "Worker.work",
        "self.messages.hide({receipt: until for receipt, until in put_back.items() if until})",
        "strays or self.messages.hide({receipt: until for receipt, until in put_back.items() if until})",
    ),
    Mutant(
        "a handler starts while its attempt expires",
        modules.RUN,
        "Attempt._begin_handler",
        "self._expired or self._report or self._context.steady() >= self.deadline",
        "self._report",
    ),
)
