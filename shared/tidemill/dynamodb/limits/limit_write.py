"""One write of a limit item under construction. Pure."""

from typing import Final

from msgspec import Struct, field

from tidemill.aws.clients import Item
from tidemill.dynamodb.update_requests import Request

#: The slots in use: a map from the name of each to the time at which it is free in any case.
HELD: Final = "held"


class LimitWrite(Struct):
    """One UpdateItem under construction. Every name uses an alias, since `last` and others are reserved words."""

    key: Item
    sets: dict[str, str] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Item] = field(default_factory=dict)
    slots: dict[str, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        self.names[f"#{name}"] = name
        return f"#{name}"

    def slot(self, name: str) -> str:
        """Short, since one write may name a hundred: see `MOST_AT_ONCE`."""
        alias = self.slots.setdefault(name, f"#s{len(self.slots)}")
        self.names[alias] = name
        return f"{self.name(HELD)}.{alias}"

    def value(self, name: str, value: Item) -> str:
        self.values[f":{name}"] = value
        return f":{name}"

    def set(self, name: str, value: Item) -> None:
        self.sets[self.name(name)] = self.value(f"new_{name}", value)

    def request(self) -> Request:
        expression = ""
        if self.sets:
            expression = "SET " + ", ".join(f"{path} = {value}" for path, value in self.sets.items())
        if self.removes:
            expression += " REMOVE " + ", ".join(self.removes)
        request: Request = {
            "Key": self.key,
            "UpdateExpression": expression.strip(),
            "ExpressionAttributeNames": self.names,
        }
        if self.conditions:
            request["ConditionExpression"] = " AND ".join(self.conditions)
        return request | ({"ExpressionAttributeValues": self.values} if self.values else {})
