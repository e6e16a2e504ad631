"""Change one part of the syntax tree of a function. Comments, line breaks and code elsewhere play no part in it."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Final, TypeVar

_Tree = TypeVar("_Tree", bound=ast.AST)


class ChangeError(Exception):
    """The function or the part to change does not occur exactly once."""


class _Entry(ast.AST):
    """A key and its value in a dictionary, which `ast` keeps in two lists."""

    _fields = ("key", "value")

    def __init__(self, key: ast.expr | None, value: ast.expr) -> None:
        super().__init__()
        self.key = key
        self.value = value


@dataclass(frozen=True, slots=True)
class _Place:
    """A run of nodes in a list of `parent`, or the one node of another field."""

    parent: ast.AST
    field: str
    start: int | None
    length: int

    def put(self, nodes: Sequence[ast.AST]) -> bool:
        """Whether the nodes fit here: a field that holds one node takes exactly one."""
        if self.start is None:
            if len(nodes) != 1:
                return False
            setattr(self.parent, self.field, nodes[0])
            return True
        siblings = getattr(self.parent, self.field)
        siblings[self.start : self.start + self.length] = nodes
        if not siblings and self.field == "body":
            siblings.append(ast.Pass())
        return True


def changed(text: str, function: str, old: str, new: str) -> ast.Module:
    """The tree of a module in which `new` replaces `old`, a part of `function`. An empty `new` removes it.

    `function` is a qualified name, such as `Class.method`; an empty one is the whole module. Both parts are of the same
    form: expressions, keyword arguments or entries of a dictionary with commas between them, statements, `for` clauses
    of a comprehension, `except` clauses, or `case` clauses. If `old` can be read in several forms, it has the first in
    which it occurs once.
    Raises `ChangeError`.
    """
    module = _with_entries(ast.parse(text))
    scope = _scope(module, function)
    counts = []
    for form in _FORMS:
        before, after = _read(form, old), _read(form, new)
        if not before or after is None:
            continue
        places = list(_places(scope, before))
        if len(places) == 1 and places[0].put(after):
            return ast.fix_missing_locations(_without_entries(module))
        counts.append(len(places))
    if not counts:
        raise ChangeError(f"{old!r} and {new!r} cannot be read as parts of Python of the same form")
    raise ChangeError(f"{old!r} occurs {max(counts)} times in {function or 'the module'}; it must occur once")


def _with_entries(tree: _Tree) -> _Tree:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            node.keys, node.values = _entries_of(node), []
    return tree


def _entries_of(node: ast.Dict) -> list[Any]:
    return [_Entry(key, value) for key, value in zip(node.keys, node.values, strict=True)]


def _without_entries(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            entries: list[Any] = node.keys
            node.keys, node.values = [each.key for each in entries], [each.value for each in entries]
    return tree


def _scope(module: ast.Module, function: str) -> ast.AST:
    found: list[ast.AST] = [module]
    for name in function.split(".") if function else ():
        found = [
            node
            for scope in found
            for node in _inside(scope)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]
    if len(found) != 1:
        raise ChangeError(f"{len(found)} functions or classes have the name {function}; there must be one")
    return found[0]


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _inside(node)


def _places(scope: ast.AST, nodes: Sequence[ast.AST]) -> Iterator[_Place]:
    wanted = [ast.dump(node) for node in nodes]
    for parent in ast.walk(scope):
        if isinstance(parent, ast.JoinedStr):
            continue  # Its constants are pieces of its text.
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for start in range(len(value) - len(nodes) + 1):
                    run = value[start : start + len(nodes)]
                    if all(map(_is_like, run, nodes)) and [ast.dump(node) for node in run] == wanted:
                        yield _Place(parent, field, start, len(nodes))
            elif len(nodes) == 1 and _is_like(value, nodes[0]) and ast.dump(value) == wanted[0]:
                yield _Place(parent, field, None, 1)


def _is_like(node: object, other: object) -> bool:
    return type(node) is type(other)


# The forms of a part. Each is read with something around it that makes it a whole.
def _expressions(text: str) -> Sequence[ast.AST]:
    call = _call(text)
    return [] if call.keywords else call.args


def _keywords(text: str) -> Sequence[ast.AST]:
    call = _call(text)
    return [] if call.args else call.keywords


def _entries(text: str) -> Sequence[ast.AST]:
    read = ast.parse(f"{{{text}\n}}", mode="eval").body
    return _entries_of(read) if isinstance(read, ast.Dict) else []


def _call(text: str) -> Any:
    return ast.parse(f"_({text}\n)", mode="eval").body


def _statements(text: str) -> Sequence[ast.AST]:
    return ast.parse(text).body


def _for_clauses(text: str) -> Sequence[ast.AST]:
    listed: Any = ast.parse(f"[_ {text}]", mode="eval").body
    return listed.generators if isinstance(listed, ast.ListComp) else []


def _except_clauses(text: str) -> Sequence[ast.AST]:
    (tried,) = ast.parse(f"try:\n    pass\n{text}").body
    return tried.handlers if isinstance(tried, ast.Try) else []


def _case_clauses(text: str) -> Sequence[ast.AST]:
    (match,) = ast.parse(f"match _:\n{indent(text, '    ')}").body
    return match.cases if isinstance(match, ast.Match) else []


_FORMS: Final = (_expressions, _keywords, _entries, _statements, _for_clauses, _except_clauses, _case_clauses)


def _read(form: Callable[[str], Sequence[ast.AST]], text: str) -> Sequence[ast.AST] | None:
    """None if the text has another form. An empty text has each form."""
    if not text:
        return []
    try:
        return [_with_entries(node) for node in form(text)] or None
    except (SyntaxError, ValueError):
        return None
