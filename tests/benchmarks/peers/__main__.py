"""`python -m tests.benchmarks.peers [NAME…]` measures Tidemill beside other systems: those whose names hold a NAME.

Prints tables of Markdown, and writes build/bench-peers.json and build/bench-peers.svg.
"""

import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.peers.catalogue import SYSTEMS
from tests.benchmarks.peers.picture import svg
from tests.benchmarks.peers.report import markdown
from tests.benchmarks.peers.run import measure
from tools.paths import ROOT


def main() -> None:
    wanted = [name.lower() for name in sys.argv[1:]]
    systems = [each for each in SYSTEMS if not wanted or any(name in each.name.lower() for name in wanted)]
    # It stays after a failure, for its logs.
    folder = Path(tempfile.mkdtemp(prefix="bench-peers-"))
    found = measure(systems, folder)
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench-peers.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (build / "bench-peers.svg").write_text(svg(found), encoding="utf-8")
    sys.stdout.write(markdown(found))
    shutil.rmtree(folder)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # Also as a job in the background, where a shell has Ctrl-C ignored: what runs is stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, interrupt)
    main()
