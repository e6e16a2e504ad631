"""What an UpdateItem says, in a form that tests can compare."""

import re
from collections.abc import Mapping
from typing import Any


def said(request: Mapping[str, Any] | None) -> tuple[set[str], set[str], list[str]]:
    """What it sets, what it removes, and its conditions, with the names and values in their places."""
    assert request is not None
    values = {name: next(iter(each.values())) for name, each in request.get("ExpressionAttributeValues", {}).items()}

    def plain(expression: str) -> str:
        named = re.sub(r"#\w+", lambda found: str(request["ExpressionAttributeNames"][found[0]]), expression)
        return re.sub(r":\w+", lambda found: str(values[found[0]]), named)

    setting, _, removing = request["UpdateExpression"].partition("REMOVE ")
    return (
        {plain(each.strip()) for each in setting.removeprefix("SET ").split(", ") if each},
        {plain(each) for each in removing.split(", ") if each},
        [plain(each) for each in request.get("ConditionExpression", "").split(" AND ") if each],
    )
