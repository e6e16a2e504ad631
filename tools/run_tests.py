"""`python -m tools.run_tests ARGUMENTS`: pytest, without the person's AWS settings, whatever a test imports."""

import os
import subprocess
import sys

from tidemill.local import environment
from tools.paths import ROOT


def main() -> int:
    clean = environment.without_aws(os.environ)
    return subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT, env=clean)


if __name__ == "__main__":
    sys.exit(main())
