"""Faults of steps."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

STEPPED: Final = (
    Mutant(
        "a recorded step runs again",
        modules.STEPS,
        "if position < len(self._job.steps):",
        "if position < len(self._job.steps) - 1:",
    ),
    Mutant(
        "a lost lease records a step",
        modules.RUN_WRITES,
        "            # The fence: a run that lost its lease must not add to the steps of the next run.\n"
        '            "#owner = :owner",\n',
        '            "(#owner = :owner OR attribute_exists(#owner))",\n',
    ),
    Mutant(
        "a step is recorded twice",
        modules.RUN_WRITES,
        'f"size(#{STEPS_ATTRIBUTE}) = :known" if known else f"attribute_not_exists(#{STEPS_ATTRIBUTE})",',
        '*([f"size(#{STEPS_ATTRIBUTE}) >= :known"] if known else []),',
    ),
    Mutant(
        "a step is not recorded",
        modules.STEPS,
        "            self._record(Step(name=name",
        '            name != "step-1" and self._record(Step(name=name',
    ),
    Mutant(
        "an older version ends a job with a step that it lacks",
        modules.STEPS,
        'own = self._version in {"", recorded[-1].version}',
        "own = True",
    ),
    Mutant(
        "steps in another order go on",
        modules.DOMAIN_STEPS,
        "    if list(asked[:common]) != names[:common]:\n",
        "    if False:\n",
    ),
    Mutant(
        "a success keeps its steps",
        modules.RUN_WRITES,
        "if job.steps and settlement.state is State.SUCCEEDED else NO_CLAUSE",
        "if False else NO_CLAUSE",
    ),
    Mutant(
        "a failure drops the steps",
        modules.RUN_WRITES,
        "if job.steps and settlement.state is State.SUCCEEDED else NO_CLAUSE",
        "if job.steps else NO_CLAUSE",
    ),
    Mutant(
        "another payload keeps the steps",
        modules.OPERATORS,
        "removes += GIVEN_TO_PAYLOAD",
        'removes += [name for name in GIVEN_TO_PAYLOAD if name != "steps"]',
    ),
    Mutant(
        "the settle does not know the steps of its run",
        modules.RUN,
        "            self._job = job\n\n    def _claim_refused",
        "            pass\n\n    def _claim_refused",
    ),
)
