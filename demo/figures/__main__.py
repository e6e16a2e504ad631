"""`python -m demo.figures FIGURE` measures and prints one figure, or without FIGURE all."""

import argparse
import sys
from typing import Final

from rich.console import Console

from demo.figures import capacity, fan_in, flood, groups, log_bytes, redrive, strain, tenants, wake
from tidemill.local.terminal_command import run

FIGURES: Final = {
    "capacity": capacity.main,
    "fan-in": fan_in.main,
    "flood": flood.main,
    "groups": groups.main,
    "log-bytes": log_bytes.main,
    "redrive": redrive.main,
    "strain": strain.main,
    "tenants": tenants.main,
    "wake": wake.main,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.figures")
    parser.add_argument("which", nargs="?", choices=FIGURES, help="the figure to measure; the default is all")
    which = parser.parse_args().which

    def measure(_: Console) -> int:
        for name in [which] if which else FIGURES:
            FIGURES[name]()
        return 0

    return run(measure)


if __name__ == "__main__":
    sys.exit(main())
