"""Metric math, as far as the alarms use it: arithmetic, comparisons, `AND`, `OR`, and the functions of `_call`.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html

Each of these works on one timestamp at a time, so an expression is a function of the values at one timestamp, where
None stands for a missing data point. Functions that look at a whole series (`SUM(m1)`, `AVG(m1)`) act differently when
CloudWatch retrieves additional data points, and AWS advises against them in alarms. They are refused here.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

#: The value of each metric at one timestamp.
Values = Mapping[str, float | None]
Evaluate = Callable[[Values], float | None]

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class UnsupportedError(Exception):
    """Something of CloudWatch that the evaluator does not implement."""


@dataclass(frozen=True, slots=True)
class Expression:
    evaluate: Evaluate
    #: The metrics in it.
    ids: frozenset[str]
    #: The value where all metrics are missing.
    when_idle: float | None


def parse_expression(text: str) -> Expression:
    """Metric math has the precedence of Python, whose parser therefore does the work.

    Raises `UnsupportedError` for what this module leaves out.
    """
    python = re.sub(r"\b(AND|OR)\b", lambda word: word[0].lower(), text)
    try:
        tree = ast.parse(python, mode="eval").body
    except SyntaxError:
        raise UnsupportedError(f"cannot parse the expression {text!r}") from None
    ids = frozenset(_ids(tree))
    evaluate = _compile(tree)
    return Expression(evaluate, ids, evaluate(dict.fromkeys(ids)))


def _compile(node: ast.expr) -> Evaluate:
    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda _: number
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _binary(_ARITHMETIC[type(op)], left, right)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            return _binary(_COMPARISONS[type(op)], left, right)
        case ast.BoolOp(op=op, values=parts):
            return _logical([_compile(part) for part in parts], every=isinstance(op, ast.And))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _call(function, arguments)
    raise UnsupportedError(f"not implemented: {ast.unparse(node)}")


def _call(function: str, arguments: list[ast.expr]) -> Evaluate:
    match function, arguments:
        case "FILL", [series, ast.Constant(value=int() | float() as filler)]:
            return _fill(_compile(series), filler)
        case "IF", [condition, then, otherwise]:
            return _if(_compile(condition), _compile(then), _compile(otherwise))
        case "MAX", [ast.List(elts=parts)]:
            return _max([_compile(part) for part in parts])
        case "SERVICE_QUOTA", [ast.Name(id=name)]:
            # The quota of a usage metric comes from the account.
            return lambda values: values.get(quota_id(name))
    raise UnsupportedError(f"not implemented: {function} of {', '.join(map(ast.unparse, arguments))}")


def quota_id(metric_id: str) -> str:
    """The id under which the values hold the service quota of a usage metric."""
    return f"{metric_id}.quota"


def _is_scalar(node: ast.expr) -> bool:
    return not any(_ids(node))


def _ids(node: ast.expr) -> Iterator[str]:
    """The metrics in it. Their ids begin with a lower-case letter, and the names of functions do not."""
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not each.id.isupper())


def _binary(function: Callable[[float, float], float], left_node: ast.expr, right_node: ast.expr) -> Evaluate:
    """Apply an operator. A data point that one series misses is 0. A division by zero drops the point.

    A series and a number yield a point wherever the series has one.
    """
    left, right = _compile(left_node), _compile(right_node)
    both_series = not _is_scalar(left_node) and not _is_scalar(right_node)

    def evaluate(values: Values) -> float | None:
        a, b = left(values), right(values)
        if both_series and (a is not None or b is not None):
            a, b = a or 0.0, b or 0.0
        if a is None or b is None:
            return None
        try:
            return float(function(a, b))
        except ZeroDivisionError:
            return None

    return evaluate


def _logical(parts: list[Evaluate], *, every: bool) -> Evaluate:
    def evaluate(values: Values) -> float | None:
        found = [part(values) for part in parts]
        if all(value is None for value in found):
            return None
        truths = [bool(value) for value in found]
        return float(all(truths) if every else any(truths))

    return evaluate


def _fill(series: Evaluate, filler: float) -> Evaluate:
    def evaluate(values: Values) -> float | None:
        value = series(values)
        return filler if value is None else value

    return evaluate


def _max(parts: list[Evaluate]) -> Evaluate:
    """Return one series with the largest value of all series at each timestamp."""
    return lambda values: max((value for part in parts if (value := part(values)) is not None), default=None)


def _if(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """A point is dropped where the condition is missing, or where it is false and the last argument is missing.

    It is 0 where the condition is true and the second argument is missing.
    """

    def evaluate(values: Values) -> float | None:
        holds = condition(values)
        if holds is None:
            return None
        if not holds:
            return otherwise(values)
        value = then(values)
        return 0.0 if value is None else value

    return evaluate
