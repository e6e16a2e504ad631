"""Turns a statement in PartiQL into the write that does the same, for AWS stand-ins that lack the language.

It knows exactly the statements that our code sends: updates of one item and inserts, whose every value is a parameter.
It raises for all others.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from tidemill.names import JOB_KEY

_LONGEST_STATEMENT: Final = 8192
_UPDATE: Final = re.compile(r'UPDATE "([\w.-]+)" ((?:(?:SET "\w+" = \?|REMOVE "\w+") )+)WHERE (.+)')
_INSERT: Final = re.compile(r'INSERT INTO "([\w.-]+)" VALUE \{((?:\'\w+\': \?(?:, (?=\'))?)+)\}')
_CHANGE: Final = re.compile(r'(SET|REMOVE) "(\w+)"')
_CLAUSE: Final = re.compile(r'"(\w+)" (?:(=|<=) \?|(IS MISSING))')
#: In the places of the parameters, that of the key.
_KEY: Final = "the key"


class UnknownStatementError(AssertionError):
    """The stand-in cannot know what AWS does with it."""


def as_update(statement: Mapping[str, Any]) -> dict[str, Any]:
    """An update of an item that does not exist is refused, as by AWS."""
    table, places, expression, condition = _parsed(statement["Statement"])
    values = statement["Parameters"]
    if len(values) != len(places):
        raise UnknownStatementError(f"{len(values)} parameters for {len(places)} places: {statement['Statement']}")
    condition = " AND ".join(filter(None, [f"attribute_exists(#{JOB_KEY})", condition]))
    return {
        "TableName": table,
        "Key": {JOB_KEY: values[places.index(_KEY)]},
        "UpdateExpression": expression,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in re.findall(r"#(\w+)", f"{expression} {condition}")},
        "ExpressionAttributeValues": {
            f":p{number}": value for number, value in enumerate(values) if places[number] != _KEY
        },
        "ReturnValuesOnConditionCheckFailure": statement.get("ReturnValuesOnConditionCheckFailure", "NONE"),
    }


def as_insert(statement: Mapping[str, Any]) -> dict[str, Any] | None:
    """None for another statement. An insert of an item that exists is refused, as a `DuplicateItem`."""
    if not (match := _INSERT.fullmatch(statement["Statement"])):
        return None
    table, attributes = match.groups()
    names = re.findall(r"'(\w+)'", attributes)
    if len(names) != len(set(names)) or len(statement["Statement"]) > _LONGEST_STATEMENT:
        raise UnknownStatementError(statement["Statement"])
    return {
        "TableName": table,
        "Item": dict(zip(names, statement["Parameters"], strict=True)),
        "ConditionExpression": f"attribute_not_exists({JOB_KEY})",
    }


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[str, list[str], str, str]:
    """Table, what each parameter is for, update expression and condition."""
    match = _UPDATE.fullmatch(text)
    if not match or len(text) > _LONGEST_STATEMENT:
        raise UnknownStatementError(text)
    table, changes, where = match.groups()
    places: list[str] = []
    sets, removes, clauses = [], [], []
    for kind, name in _CHANGE.findall(changes):
        if kind == "REMOVE":
            removes.append(f"#{name}")
        else:
            sets.append(f"#{name} = :p{len(places)}")
            places.append(name)
    for name, operator, missing in _clauses(where):
        if missing:
            clauses.append(f"attribute_not_exists(#{name})")
        elif name == JOB_KEY and operator == "=":
            places.append(_KEY)
        else:
            clauses.append(f"#{name} {operator} :p{len(places)}")
            places.append(name)
    if places.count(_KEY) != 1:
        raise UnknownStatementError(f"it names no item: {text}")
    expression = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
    return table, places, expression, " AND ".join(clauses)


def _clauses(where: str) -> Iterator[tuple[str, str, str]]:
    for text in where.split(" AND "):
        if not (clause := _CLAUSE.fullmatch(text)):
            raise UnknownStatementError(f"the condition {text!r}")
        yield clause.group(1), clause.group(2) or "", clause.group(3) or ""
