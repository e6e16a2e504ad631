"""`python -m tests.benchmarks [--counted [--listing] | --instructions | --cold-starts]` measures both builds.

With `--counted`, only what is exact in every run. With `--listing`, each job of Tidemill is in the listing index.
With `--instructions`, what each module of Tidemill's build executes. With `--cold-starts`, only first invocations.
Prints tables of Markdown, or the counts as JSON. A whole run also writes build/bench.json and build/bench.svg.
"""

import json
import os
import sys
from contextlib import redirect_stdout

from tests.benchmarks.budgets import figures
from tests.benchmarks.log_meter import Log
from tests.benchmarks.loopback_client import loopback
from tests.benchmarks.picture import svg
from tests.benchmarks.tables import markdown, of_cold_starts
from tidemill.names import Env
from tools.paths import ROOT


def main() -> None:
    log = Log()
    with loopback() as aws, redirect_stdout(log):
        if "--listing" in sys.argv[1:]:
            os.environ[Env.LISTING] = "true"
        # The builds make their clients and loggers at import: of this server, with this log.
        from tests.benchmarks import builds, cold_start, counted, instructions, run

        if "--counted" in sys.argv[1:]:
            text = json.dumps(counted.measure(aws), indent=1) + "\n"
        elif "--instructions" in sys.argv[1:]:
            text = json.dumps(instructions.measure(builds.Tidemill(), aws), indent=1) + "\n"
        elif "--cold-starts" in sys.argv[1:]:
            text = of_cold_starts(cold_start.measure(aws))
        else:
            found = run.measure(aws, log)
            text = markdown(found)
            folder = ROOT / "build"
            folder.mkdir(exist_ok=True)
            (folder / "bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            (folder / "bench.svg").write_text(svg(figures(found)), encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
