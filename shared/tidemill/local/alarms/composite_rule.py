"""The rule of a composite alarm, such as `(ALARM("a") AND ALARM("b")) OR ALARM("c")`.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.local.alarms.metric_math import UnsupportedError

#: The state of each alarm by its name.
States = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    holds: Callable[[States], bool]
    #: The names of the alarms in the rule.
    children: frozenset[str]


def parse_rule(text: str) -> Rule:
    """Operators have the precedence of Python, whose parser does the work. Raises `UnsupportedError`."""
    python = re.sub(
        r"\b(AND|OR|NOT|TRUE|FALSE)\b(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)",
        lambda word: word[0].title() if word[0] in {"TRUE", "FALSE"} else word[0].lower(),
        text,
    )
    try:
        tree = ast.parse(python.strip(), mode="eval").body
    except SyntaxError:
        raise UnsupportedError(f"cannot parse the rule {text!r}") from None
    children = frozenset(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return Rule(_compile(tree), children)


def _compile(node: ast.expr) -> Callable[[States], bool]:
    match node:
        case ast.Constant(value=bool() as fixed):
            return lambda _: fixed
        case ast.Call(
            func=ast.Name(id="ALARM" | "OK" | "INSUFFICIENT_DATA" as state), args=[ast.Constant(value=str(name))]
        ):
            return lambda states: states[name] == state
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _compile(operand)
            return lambda states: not inner(states)
        case ast.BoolOp(op=op, values=values):
            parts = [_compile(value) for value in values]
            combine = all if isinstance(op, ast.And) else any
            return lambda states: combine(part(states) for part in parts)
    raise UnsupportedError(f"not implemented: {ast.unparse(node)}")
