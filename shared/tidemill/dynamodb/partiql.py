"""Says a request of the protocol as a PartiQL statement, in the forms that AWS documents. Pure.

`SET` for each attribute, `REMOVE`, `AND`, `=`, `<=` and `IS MISSING`; and every value is a parameter.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-operators.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-functions.missing.html
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final

from tidemill.aws.clients import Item
from tidemill.dynamodb.update_requests import Request
from tidemill.names import JOB_KEY

_ASSIGNMENT: Final = re.compile(r"#(\w+) = (:\w+)")
_COMPARISON: Final = re.compile(r"#(\w+) (=|<=) (:\w+)")
_MISSING: Final = re.compile(r"attribute_not_exists\(#(\w+)\)")
_ALL_OLD: Final = "ALL_OLD"

Statement = dict[str, Any]


def statement(table: str, request: Request, *, absent: Collection[str] = ()) -> Statement | None:
    """None for a request that needs more of the language than this module uses.

    It does not remove the attributes that are known to be `absent`.
    """
    said = _said(table, request["UpdateExpression"], request["ConditionExpression"], frozenset(absent))
    if said is None:
        return None
    text, placeholders = said
    values = request["ExpressionAttributeValues"] | {f":{JOB_KEY}": request["Key"][JOB_KEY]}
    return {
        "Statement": text,
        "Parameters": [values[placeholder] for placeholder in placeholders],
        "ReturnValuesOnConditionCheckFailure": _ALL_OLD,
    }


def insertion(table: str, item: Item) -> Statement:
    """Refused if an item with the same key exists."""
    return {"Statement": _inserted(table, tuple(item)), "Parameters": list(item.values())}


@lru_cache(maxsize=256)
def _inserted(table: str, names: Sequence[str]) -> str:
    attributes = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{attributes}}}'


@lru_cache(maxsize=256)
def _said(table: str, update: str, condition: str, absent: frozenset[str]) -> tuple[str, Sequence[str]] | None:
    """The text, and the placeholder of each parameter. The alias of each attribute is its name: see `update`."""
    sets, _, removes = update.removeprefix("SET ").partition(" REMOVE ")
    changes, conditions, placeholders = [], [f'"{JOB_KEY}" = ?'], []
    for part in sets.split(", "):
        if not (assigned := _ASSIGNMENT.fullmatch(part)):
            return None
        name, value = assigned.groups()
        changes.append(f'SET "{name}" = ?')
        placeholders.append(value)
    removed = [alias.removeprefix("#") for alias in removes.split(", ") if alias]
    changes += [f'REMOVE "{name}"' for name in removed if name not in absent]
    placeholders.append(f":{JOB_KEY}")
    for clause in condition.split(" AND "):
        if compared := _COMPARISON.fullmatch(clause):
            name, operator, value = compared.groups()
            conditions.append(f'"{name}" {operator} ?')
            placeholders.append(value)
        elif missing := _MISSING.fullmatch(clause):
            conditions.append(f'"{missing.group(1)}" IS MISSING')
        else:
            return None
    return f'UPDATE "{table}" {" ".join(changes)} WHERE {" AND ".join(conditions)}', placeholders
