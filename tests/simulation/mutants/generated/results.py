"""What caught each mutant, kept in a file, so that an interrupted run goes on where it stopped."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.simulation.mutants.generated.generate import ENGINE, ROOT

#: A change in these folders makes earlier results worthless.
_INPUTS: Final = (ENGINE, ROOT / "tests", ROOT / "stacks")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one mutant."""

    id: str
    #: The story that caught it, or the check with its seed; None if every one passed.
    simulator: str | None
    #: The test that caught it; None if every test passed, or if the simulator caught it and no test ran.
    tests: str | None = None
    #: How many stories and seeds reach its block, of which the first that fails ends the run.
    plays: int = 0

    @property
    def by_story(self) -> bool:
        return self.simulator is not None and self.simulator.startswith("story ")

    @property
    def survived(self) -> bool:
        return self.simulator is None and self.tests is None


class Results:
    """The results of one seed for the present content of the tree."""

    def __init__(self, folder: Path, seed: str, *, seeds: int) -> None:
        self._path = folder / f"mutants-{seed}.jsonl"
        self._tree = f"{tree_digest()}-{seeds}"
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Result] = {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                written = json.loads(line)
                if written.pop("tree") == self._tree:
                    self._known[written["id"]] = Result(**written)

    def get(self, mutant_id: str) -> Result | None:
        return self._known.get(mutant_id)

    def add(self, result: Result) -> None:
        self._known[result.id] = result
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"tree": self._tree, **asdict(result)}) + "\n")


def tree_digest() -> str:
    """Return a digest of all files that decide what a simulation does."""
    digest = hashlib.sha256()
    for folder in _INPUTS:
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("records/*.txt")]):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
