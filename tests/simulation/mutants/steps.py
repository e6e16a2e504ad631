"""Faults of steps."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

STEPPED: Final = (
    Mutant(
        "a recorded step runs again",
        modules.STEPS,
        "Steps._take",
        "len(self._job.steps.recorded)",
        "len(self._job.steps.recorded) - 1",
    ),
    Mutant(
        "a lost lease records a step",
        modules.RUN_WRITES,
        "record_step",
        "'#owner = :owner'",
        "'(#owner = :owner OR attribute_exists(#owner))'",
    ),
    Mutant(
        "a step is recorded twice",
        modules.RUN_WRITES,
        "record_step",
        "f'size(#{STEPS_ATTRIBUTE}) = :known' if known else f'attribute_not_exists(#{STEPS_ATTRIBUTE})'",
        "*([f'size(#{STEPS_ATTRIBUTE}) >= :known'] if known else [])",
    ),
    Mutant(
        "a step is not recorded",
        modules.STEPS,
        "Steps._take",
        "self._record(Step(name=name, at=self._clock(), attempt=attempt, result=text, version=self._version))",
        "name != 'step-1' and self._record(Step(name=name, at=self._clock(), attempt=attempt, "
        "result=text, version=self._version))",
    ),
    Mutant(
        "an older version ends a job with a step that it lacks",
        modules.STEPS,
        "Steps.of_another_version",
        "self._version in {'', recorded[-1].version}",
        "True",
    ),
    Mutant(
        "steps in another order go on",
        modules.DOMAIN_STEPS,
        "require_same_order",
        "list(asked[:common]) != names[:common]",
        "False",
    ),
    Mutant(
        "a success keeps its steps",
        modules.RUN_WRITES,
        "used_up_steps",
        "job.steps.recorded and settlement.state is State.SUCCEEDED",
        "False",
    ),
    Mutant(
        "a failure drops the steps",
        modules.RUN_WRITES,
        "used_up_steps",
        "job.steps.recorded and settlement.state is State.SUCCEEDED",
        "job.steps.recorded",
    ),
    Mutant(
        "another payload keeps the steps",
        modules.OPERATORS,
        "redrive",
        "GIVEN_TO_PAYLOAD",
        "[name for name in GIVEN_TO_PAYLOAD if name != 'steps']",
    ),
    Mutant(
        "the settle does not know the steps of its run",
        modules.RUN,
        "Attempt.written",
        "self._claimed().job = job",
        "pass",
    ),
)
