"""What no linter looks for: files that grew too long, and the marks of one person's machine or package mirror."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.paths import ROOT

LONGEST_FILE_LINES: Final = 400
#: Not ours, or made by a program.
SKIPPED: Final = frozenset(
    (
        ".git",
        ".venv",
        ".tidemill",
        "node_modules",
        "build",
        "dist",
        "cdk.out",
        "__pycache__",
        ".hypothesis",
        "tidemill.egg-info",
    )
)
LOCKS: Final = frozenset(("package-lock.json", "requirements.txt", "requirements-dev.txt", "requirements-peers.txt"))
MACHINE_PATH: Final = re.compile(r"(?<![\w.)}])/(?:home|Users|root|private)/\w")
#: A lock or a setting that says where packages come from: each user configures that on their own machine.
MIRROR: Final = re.compile(r"(?:index[-_]url|find[-_]links|registry|resolved)\W{1,4}(?:https?|file):")


def faults() -> Iterator[str]:
    for path in sorted(files_of(ROOT)):
        name = path.relative_to(ROOT)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        if path.suffix == ".py" and len(lines) > LONGEST_FILE_LINES:
            yield f"{name}: {len(lines)} lines; split it before it passes {LONGEST_FILE_LINES}"
        for number, line in enumerate(lines, start=1):
            if MACHINE_PATH.search(line):
                yield f"{name}:{number}: a path of one machine; use a relative path"
            if MIRROR.search(line) or (path.name in LOCKS and "://" in line):
                yield f"{name}:{number}: names a package registry"


def files_of(root: Path) -> Iterator[Path]:
    """The files of the repository, without those that tools make."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.endswith("_cache")]
        yield from (Path(folder, name) for name in files)


def main() -> int:
    found = list(faults())
    for fault in found:
        sys.stdout.write(f"{fault}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
