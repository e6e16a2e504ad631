"""All generated mutants: each has an id that stays while its function stays, a description and a diff."""

import ast
import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType
from typing import Final

from tests.simulation.mutants.generated.mutation_sites import Sites

ROOT: Final = Path(__file__).parents[4]
ENGINE: Final = ROOT / "shared" / "tidemill"
#: What is mutated: the protocol, its writes and its functions.
MUTATED: Final = (
    "domain",
    "application",
    "dynamodb",
    "sqs",
    "worker",
    "powertools",
    "entrypoints/publish.py",
    "entrypoints/work.py",
    "entrypoints/wake.py",
    "entrypoints/reconcile.py",
)
_ENUM_BASES: Final = frozenset(("StrEnum", "Enum"))


@dataclass(frozen=True, slots=True)
class GeneratedMutant:
    """One change to the text of one module."""

    #: Module, qualified name, operator and occurrence.
    id: str
    module: str
    line: int
    description: str
    #: Text of the whole module.
    mutated: str

    def code(self, path: str) -> CodeType:
        return compile(self.mutated, path, "exec")

    @property
    def path(self) -> Path:
        return _path_of(self.module)

    def diff(self) -> str:
        name = str(self.path.relative_to(ROOT))
        old, new = self.path.read_text(encoding="utf-8"), self.mutated
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, n=2, lineterm="")
        return "\n".join(lines)


@cache
def all_mutants() -> dict[str, GeneratedMutant]:
    """By id."""
    enums = _enums()
    return {mutant.id: mutant for path in mutated_files() for mutant in mutants_of(path, enums)}


def mutant_named(name: str) -> GeneratedMutant:
    """The mutant with this id, without the time that all others take. Raises `KeyError`."""
    module = f"tidemill.{name.partition(':')[0]}"
    return {mutant.id: mutant for mutant in mutants_of(_path_of(module), _enums())}[name]


def mutants_of(path: Path, enums: Mapping[str, Sequence[str]]) -> Iterator[GeneratedMutant]:
    text = path.read_text(encoding="utf-8")
    module = name_of(path)
    sites, counts = Sites(text, enums), Counter[tuple[str, str]]()
    seen = set[tuple[int, str]]()
    for name, change in sites.found:
        begin, before = sites.source.part(change, changed=False)
        _, after = sites.source.part(change, changed=True)
        # Parsing the whole module for each change takes eight times as long.
        seen.add((begin, _tree_before(before)))
        try:
            tree = begin, _tree(after)
        except SyntaxError:
            continue
        if tree in seen:
            continue
        seen.add(tree)
        number = counts[name, change.operator]
        counts[name, change.operator] += 1
        yield GeneratedMutant(
            id=f"{module.removeprefix('tidemill.')}:{name}:{change.operator}:{number}",
            module=module,
            line=sites.source.line(change.start),
            description=sites.source.described(change),
            mutated=sites.source.replaced(change),
        )


def _tree(text: str) -> str:
    return ast.dump(ast.parse(text))


#: The changes of one part come one after the other.
_tree_before: Final = lru_cache(maxsize=1)(_tree)


def mutated_files() -> Iterator[Path]:
    for name in MUTATED:
        path = ENGINE / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def name_of(path: Path) -> str:
    """The name of the module in this file."""
    return ".".join(path.relative_to(ENGINE.parent).with_suffix("").parts)


def _path_of(module: str) -> Path:
    return ENGINE.parent.joinpath(*module.split(".")).with_suffix(".py")


def _enums() -> dict[str, list[str]]:
    """The members of each enum of the engine."""
    found = {}
    for path in [*mutated_files(), ENGINE / "metrics.py", ENGINE / "names.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and {getattr(base, "id", "") for base in node.bases} & _ENUM_BASES:
                found[node.name] = [
                    target.id
                    for statement in node.body
                    if isinstance(statement, ast.Assign)
                    for target in statement.targets
                    if isinstance(target, ast.Name)
                ]
    return found
