"""The writes of handlers as entries of a transaction, which writes each item once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidemill.aws.attribute_values import number
from tidemill.domain.attempt.effects import Add, Effect, TransactWrite
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import EffectRefusedError


def entry_names(effects: Iterable[Effect]) -> list[object]:
    """A name for the entry of each effect. Effects with equal names are one entry."""
    return [_name(effect) or object() for effect in effects]


def entries(effects: Sequence[Effect]) -> list[TransactWrite]:
    """The entries of these effects: the sum of what is added to an item is one entry, and so are equal puts.

    Two puts are equal if they write the same item under no condition: to write it once is the same.

    Raises `EffectRefusedError` for what cannot be encoded. The objects are those of a handler, and may raise anything.
    """
    try:
        merged: dict[object, list[Effect]] = {}
        for name, effect in zip(entry_names(effects), effects, strict=True):
            merged.setdefault(name, []).append(effect)
        return [_entry(same) for same in merged.values()]
    except BaseException as error:
        raise EffectRefusedError(f"the handler's writes cannot be encoded: {error_text(error)}") from error


def _name(effect: Effect) -> str | None:
    """None for an effect that no other can share its entry with. Also for one that is not valid: AWS refuses it."""
    try:
        if isinstance(effect, Add):
            return _text([effect.table, effect.key])
        put = effect.get("Put")
        return _text(effect) if isinstance(put, Mapping) and "ConditionExpression" not in put else None
    except BaseException:  # noqa: BLE001 - as in `entries`, which reports it
        return None


def _entry(same: Sequence[Effect]) -> TransactWrite:
    first = same[0]
    if not isinstance(first, Add):
        return first
    amounts: dict[str, int] = {}
    for add in same:
        for name, amount in add.amounts.items() if isinstance(add, Add) else ():
            amounts[name] = amounts.get(name, 0) + amount
    # Aliases, since the name of an attribute may hold any character.
    aliases = {f"#a{index}": name for index, name in enumerate(amounts)}
    return {
        "Update": {
            "TableName": first.table,
            "Key": first.key,
            "UpdateExpression": "ADD " + ", ".join(f"#a{index} :a{index}" for index in range(len(amounts))),
            "ExpressionAttributeNames": aliases,
            "ExpressionAttributeValues": {
                f":a{index}": number(amount) for index, amount in enumerate(amounts.values())
            },
        }
    }


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
