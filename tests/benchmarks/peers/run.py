"""Runs every phase against every system that is there."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.peers import phases
from tests.benchmarks.peers.system import System
from tests.benchmarks.peers.underway import Underway


def measure(systems: Sequence[System], folder: Path) -> dict[str, Any]:
    """The document of the peers: `systems`, by name and phase, and `skipped`, by name with the reason.

    Each phase runs against all systems in turn, so that a slow time of the machine does not fall on one alone. `folder`
    takes the logs.
    """
    found: dict[str, Any] = {"systems": {}, "skipped": {}}
    with ExitStack() as stack:
        underway = {}
        for system in systems:
            if reason := system.lacks():
                found["skipped"][system.name] = reason
                _say(f"skipped {system.name}: {reason}")
                continue
            _say(f"starting {system.name}")
            running = system.start(stack, folder)
            underway[system.name] = Underway(stack, running, folder / f"{running.submits}.producer.log")
            found["systems"][system.name] = {"setting": system.setting, "guarantee": system.guarantee, "phases": {}}
        for phase in phases.PHASES:
            for name, each in underway.items():
                _say(f"{phase}: {name}")
                by_phase = found["systems"][name]["phases"]
                capacity = phases.capacity_of(by_phase["burst"]) if "burst" in by_phase else phases.RATE
                by_phase[phase] = phases.run(phase, each, capacity)
    return {**found, "processors": os.cpu_count(), "load": os.getloadavg()[0]}


def _say(text: str) -> None:
    sys.stderr.write(f"peers: {text}\n")
