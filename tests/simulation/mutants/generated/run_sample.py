"""Run a sample of generated mutants: first the simulator, then the tests for those that it lets through."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Final

from tests.simulation.mutants.generated.equivalent_mutants import equivalents
from tests.simulation.mutants.generated.forks import End, in_forks
from tests.simulation.mutants.generated.generate import ROOT, GeneratedMutant, all_mutants
from tests.simulation.mutants.generated.reached_plays import reached_plays
from tests.simulation.mutants.generated.reached_tests import reached_tests
from tests.simulation.mutants.generated.results import Result, Results, tree_digest
from tests.simulation.mutants.generated.sample import sample
from tests.simulation.mutants.generated.simulate_mutants import caught_by, preload
from tests.simulation.mutants.generated.summary import Summary
from tests.simulation.mutants.generated.targeted_tests import failing_test

#: The seeds of which those that reach a mutant are simulated, but not more of these.
SEEDS_OF_A_GENERATED_MUTANT: Final = 600
MOST_SEEDS_THAT_REACH: Final = 60


def chosen_mutants(count: int | None, seed: str, *, only: str | None = None) -> list[GeneratedMutant]:
    """A sample of the mutants whose ids match the glob `only`, or all of those if `count` is None."""
    matching = [mutant for mutant in all_mutants().values() if fnmatchcase(mutant.id, only or "*")]
    return matching if count is None else sample(matching, count=count, seed=seed)


def run_sample(chosen: Sequence[GeneratedMutant], seed: str, *, processes: int, seeds: int) -> int:
    """0 if the sample keeps within the bounds of `Summary`, else 1. `seed` names the file of its results."""
    reasons = equivalents()
    excused = {mutant.id for mutant in chosen if mutant.id in reasons and reasons[mutant.id].fits(mutant)}
    judged = [mutant for mutant in chosen if mutant.id not in excused]
    run = SampleRun(judged, Results(ROOT / "build", seed, seeds=seeds), processes=processes, seeds=seeds)
    run.run()
    summary = Summary(run.results(), equivalent=len(excused))
    _print(summary.text())
    return 0 if summary.within_bounds else 1


class SampleRun:
    """One run over a sample. Mutants with a result from an earlier run of the same tree are not run again."""

    def __init__(self, mutants: Sequence[GeneratedMutant], results: Results, *, processes: int, seeds: int) -> None:
        self._mutants = mutants
        self._results = results
        self._processes = processes
        self._seeds = seeds

    def results(self) -> list[Result]:
        return [found for mutant in self._mutants if (found := self._results.get(mutant.id))]

    def run(self) -> None:
        """Each mutant in a process, of which a fork runs the simulator, and another one the tests."""
        fresh = [mutant for mutant in self._mutants if self._results.get(mutant.id) is None]
        _print(f"{len(self._mutants)} mutants, {len(self._mutants) - len(fresh)} with a result of an earlier run")
        preload()
        folder, digest = ROOT / "build", tree_digest()
        plays = reached_plays(
            folder / f"reached-{digest}-{self._seeds}.json", seeds=self._seeds, processes=self._processes
        )
        tests = reached_tests(folder / f"reached-{digest}-tests.json", processes=self._processes)
        began = time.monotonic()

        def judge(mutant: GeneratedMutant, _end: End) -> str:
            own = plays.of(mutant, most_seeds=MOST_SEEDS_THAT_REACH)
            caught = caught_by(mutant, own)
            result = Result(mutant.id, caught, None if caught else failing_test(mutant, tests.of(mutant)), len(own))
            return json.dumps(asdict(result))

        for done, ended in enumerate(in_forks(fresh, judge, processes=self._processes), 1):
            result = Result(**json.loads(ended.result()))
            self._results.add(result)
            _print(f"{done:>4}  {time.monotonic() - began:4.0f} s  {_line(ended.item, result)}")


def _line(mutant: GeneratedMutant, result: Result) -> str:
    if result.simulator:
        return f"simulator  {mutant.id}: {result.simulator}"
    if result.tests:
        return f"tests      {mutant.id}: {mutant.description}: {result.plays} plays passed: {result.tests}"
    return f"SURVIVED   {mutant.id}: {result.plays} plays passed: {mutant.description}\n{mutant.diff()}"


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command
