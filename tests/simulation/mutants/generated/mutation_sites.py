"""All changes to one module, with the qualified name of the function or class that each is in."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.simulation.mutants.generated import expressions, statements
from tests.simulation.mutants.generated.dynamodb_clauses import clause_changes
from tests.simulation.mutants.generated.source_text import Change, SourceText

#: Calls that only write a log line or a metric.
_TELEMETRY: Final = frozenset(("logger", "telemetry"))
#: Keywords whose values change no result: `zip(strict=True)`, and the arguments of the log.
_IGNORED_KEYWORDS: Final = frozenset(("strict", "logger", "extra"))
#: Calls to which the name of a write matters.
_DECIDING: Final = frozenset(("allowed",))
_MODULE: Final = "(module)"


class Sites(ast.NodeVisitor):
    """Collects changes. It leaves out docstrings, annotations, decorators, messages of errors, logs and metrics."""

    def __init__(self, text: str, enums: Mapping[str, Sequence[str]]) -> None:
        self.source = SourceText(text)
        self.found: list[tuple[str, Change]] = []
        self._enums = enums
        self._scope: list[str] = []
        #: How many expressions around this one are times or sizes.
        self._measures = 0
        self.visit(ast.parse(text))

    def _add(self, changes: Iterable[Change]) -> None:
        name = ".".join(self._scope) or _MODULE
        self.found += [(name, change) for change in changes]

    # Statements.
    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            self._scoped(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope.append(node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default:
                self.visit(default)
        self._add(statements.early_returns(self.source, node))
        self._scope.pop()
        self._scoped(node.name, node.body, function=True)

    def _scoped(self, name: str, body: Sequence[ast.stmt], *, function: bool = False) -> None:
        self._scope.append(name)
        for statement in body:
            if function:
                self._add(statements.dropped(self.source, statement, last=statement is body[-1]))
            self.visit(statement)
        self._scope.pop()

    def generic_visit(self, node: ast.AST) -> None:
        """Statements of a block can be dropped; those of a function or module are handled by their visitor."""
        for _, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt) and self._scope and not isinstance(node, ast.Module):
                    self._add(statements.dropped(self.source, child, last=False))
                if isinstance(child, ast.AST):
                    self.visit(child)

    def visit_Raise(self, node: ast.Raise) -> None:
        """The error and its message stay; `dropped` drops the statement."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if "__all__" not in names and (self._scope or not _is_type_alias(node.value)):
            self._constant_of_module(node.value)
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._constant_of_module(node.value)
            self.visit(node.value)

    def _constant_of_module(self, value: ast.expr) -> None:
        if not self._scope and isinstance(value, ast.Tuple) and value.elts:
            self._add(expressions.elements(self.source, value))

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._add(expressions.conditions(self.source, node.test))
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._add(expressions.conditions(self.source, node.test, loop=True))
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        self._add(statements.handlers_that_catch_nothing(self.source, node))
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if isinstance(node.type, ast.Tuple):
            self._add(expressions.elements(self.source, node.type))
        for statement in node.body:
            self._add(statements.dropped(self.source, statement, last=False))
            self.visit(statement)

    def visit_With(self, node: ast.With) -> None:
        self._add(statements.contexts_not_entered(self.source, node))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        if isinstance(node.iter, ast.Tuple):
            self._add(expressions.elements(self.source, node.iter))
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard:
            self._add(expressions.conditions(self.source, node.guard))
        self.generic_visit(node)

    # Expressions.
    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._add(expressions.conditions(self.source, node.test))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._add(expressions.conditions(self.source, test))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add(expressions.operands(self.source, node))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._add(expressions.comparison(self.source, node))
        for right in node.comparators:
            if isinstance(right, ast.Tuple):
                self._add(expressions.elements(self.source, right))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.BitOr):
            self._add(expressions.merged(self.source, node))
        self._add(expressions.arithmetic(self.source, node))
        # Outside functions, products are sizes: `8 * 1024`.
        self._measures += not self._scope and isinstance(node.op, ast.Mult)
        self.generic_visit(node)
        self._measures -= not self._scope and isinstance(node.op, ast.Mult)

    def visit_Call(self, node: ast.Call) -> None:
        if _names(node.func) & _TELEMETRY:
            return
        self._add(expressions.extreme(self.source, node))
        is_time = isinstance(node.func, ast.Name) and node.func.id == "timedelta"
        self._measures += is_time
        keywords = [keyword.value for keyword in node.keywords if keyword.arg not in _IGNORED_KEYWORDS]
        for child in [node.func, *node.args, *keywords]:
            if not _is_label(child) or _names(node.func) & _DECIDING:
                self.visit(child)
        self._measures -= is_time

    def visit_Constant(self, node: ast.Constant) -> None:
        self._add(expressions.constant(self.source, node, measure=self._measures > 0))
        if isinstance(node.value, str):
            self._add(clause_changes(self.source, node))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._add(clause_changes(self.source, node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._add(expressions.member(self.source, node, self._enums))
        self.visit(node.value)

    def visit_List(self, node: ast.List) -> None:
        if isinstance(node.ctx, ast.Load) and node.elts:
            self._add(expressions.elements(self.source, node))
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self._add(expressions.elements(self.source, node))
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if node.keys:
            self._add(expressions.entries(self.source, node))
        self.generic_visit(node)


def _is_type_alias(value: ast.expr) -> bool:
    """Such as `Callable[[Job], None]` and `Job | None`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return all(
            isinstance(part, ast.Name | ast.Constant) or _is_type_alias(part) for part in (value.left, value.right)
        )
    return isinstance(value, ast.Subscript)


def _is_label(node: ast.expr) -> bool:
    """Whether it is the name of a write, which an error message repeats."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Write"


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


__all__ = ["Sites"]
