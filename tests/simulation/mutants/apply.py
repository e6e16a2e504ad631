"""Apply a mutant: its module is compiled from the changed syntax tree when it is first imported."""

import importlib.machinery
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Protocol

from tests.simulation.mutants.tree_change import ChangeError, changed


class MutantError(Exception):
    """A mutant does not fit the present code: update it."""


class Mutation(Protocol):
    """A change to one module."""

    @property
    def module(self) -> str: ...

    def code(self, path: str) -> CodeType:
        """The changed module, whose file is at `path`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one function of a module, as `tree_change` reads it: `new` replaces `old`."""

    name: str
    module: str
    #: Its qualified name, such as `Class.method`, or that of a class. Empty for the whole module.
    function: str
    old: str
    new: str

    def code(self, path: str) -> CodeType:
        """Raises `MutantError`, and `SyntaxError` if the changed module is not valid Python."""
        text = Path(path).read_text(encoding="utf-8")
        try:
            return compile(changed(text, self.function, self.old, self.new), path, "exec")
        except ChangeError as error:
            raise MutantError(f"{self.name}: {self.module}: {error}") from error

    def checked(self) -> None:
        """Raises `MutantError` if the mutant cannot be applied, and `SyntaxError` if it is not valid Python."""
        try:
            spec = find_spec(self.module)
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None:
            raise MutantError(f"{self.name}: module {self.module} does not exist")
        self.code(spec.origin)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutation) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        return self._mutant.code(self.get_filename(fullname))


class _Finder:
    def __init__(self, mutant: Mutation) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise MutantError(f"module {fullname} does not exist")
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


def apply(mutant: Mutation) -> None:
    """Call this before the module is imported. Raises `MutantError` if it is imported already."""
    if mutant.module in sys.modules:
        raise MutantError(f"{mutant.module} is imported already")
    sys.meta_path.insert(0, _Finder(mutant))
