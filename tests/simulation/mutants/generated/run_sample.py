"""Run a sample of generated mutants: first the simulator, then the tests for those that it lets through."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase
from typing import Final

from tests.simulation.mutants.generated.equivalent_mutants import equivalents
from tests.simulation.mutants.generated.generate import ROOT, GeneratedMutant, all_mutants
from tests.simulation.mutants.generated.reached_seeds import reached_seeds
from tests.simulation.mutants.generated.results import Result, Results, tree_digest
from tests.simulation.mutants.generated.sample import sample
from tests.simulation.mutants.generated.simulate_mutants import preload, simulate_mutants
from tests.simulation.mutants.generated.summary import Summary
from tests.simulation.mutants.generated.targeted_tests import failing_test

SEEDS_OF_A_GENERATED_MUTANT: Final = 500


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
    run.simulate()
    run.test()
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
        self._began = time.monotonic()
        self._done = 0
        self._passed: list[GeneratedMutant] = []

    def results(self) -> list[Result]:
        return [found for mutant in self._mutants if (found := self._results.get(mutant.id))]

    def simulate(self) -> None:
        fresh = [mutant for mutant in self._mutants if self._results.get(mutant.id) is None]
        _print(f"{len(self._mutants)} mutants, {len(self._mutants) - len(fresh)} with a result of an earlier run")
        preload()
        path = ROOT / "build" / f"reached-{tree_digest()}-{self._seeds}.json"
        reached = reached_seeds(path, seeds=self._seeds, processes=self._processes)
        # Those that few seeds reach come first: they end soon.
        work = sorted(((mutant, reached.of(mutant)) for mutant in fresh), key=lambda one: len(one[1]))
        seeds_of = {mutant.id: len(seeds) for mutant, seeds in work}
        for mutant, caught in simulate_mutants(work, processes=self._processes):
            if caught is None:
                self._passed.append(mutant)
                _print(f"        passed, {seeds_of[mutant.id]} seeds reach it: {mutant.id}: {mutant.description}")
            else:
                self._add(mutant, Result(mutant.id, simulator=caught))

    def test(self) -> None:
        with ThreadPoolExecutor(self._processes) as pool:
            running = {pool.submit(failing_test, mutant): mutant for mutant in self._passed}
            for ended in as_completed(running):
                self._add(running[ended], Result(running[ended].id, simulator=None, tests=ended.result()))

    def _add(self, mutant: GeneratedMutant, result: Result) -> None:
        self._results.add(result)
        self._done += 1
        verdict = "SURVIVED" if result.survived else "simulator" if result.simulator else "tests"
        what = result.simulator or result.tests or f"{mutant.description}\n{mutant.diff()}"
        _print(f"{self._done:>4}  {time.monotonic() - self._began:4.0f} s  {verdict:9}  {mutant.id}: {what}")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command
