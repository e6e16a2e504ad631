"""`python -m tests.model --examples 20000` for a long run, `--mutant 'no fence'` for a mutant that must be caught.

`--groups` explores every history of a group of three submissions, a cancel and a redrive instead: some minutes, 2 GB.
`--flows` explores the histories of small flows, with more faults than the tests: some minutes.
A long run draws new examples each time. It prints a difference with its shortest story, and exits with 1.
"""

import argparse
import sys
import time

from tests.model.flow_graphs import LARGE
from tests.model.flow_histories import explore as explore_flow
from tests.model.flow_protocol import Protocol as FlowProtocol
from tests.model.group_histories import explore
from tests.model.group_protocol import Protocol
from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.catalogue import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--examples", type=int, default=600)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--mutant", choices=[mutant.name for mutant in MUTANTS], metavar="NAME")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--flows", action="store_true")
    arguments = parser.parse_args()
    if arguments.groups:
        states = explore(Protocol(), submissions=3, cancels=1, redrives=1)
        _print(f"{states:,} states of a group; no promise is broken")
        return 0
    if arguments.flows:
        for name, case in LARGE.items():
            states = explore_flow(FlowProtocol(), case.graph, case.faults, added=case.added)
            _print(f"{states:,} states of {name}; no promise is broken")
        return 0
    if arguments.mutant:
        apply(next(mutant for mutant in MUTANTS if mutant.name == arguments.mutant))
    # A mutant must be applied before the engine is imported.
    from tests.model.run import run_examples

    began = time.monotonic()
    try:
        totals = run_examples(arguments.examples, steps=arguments.steps, by_chance=not arguments.mutant)
    except Exception as found:  # noqa: BLE001 - any exception is a finding
        _print(*getattr(found, "__notes__", []), f"{type(found).__name__}: {found}")
        return 1
    seconds = time.monotonic() - began
    _print(f"{totals.examples} examples, {totals.steps} steps, {totals.steps / seconds:.0f} a second; no difference")
    return 0


def _print(*group_orders: str) -> None:
    print(*group_orders, sep="\n")  # noqa: T201 - output of a command, read by the test


if __name__ == "__main__":
    sys.exit(main())
