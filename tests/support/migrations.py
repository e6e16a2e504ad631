"""Functions for migrations, as an app has them: a payload `{"n": 1}` becomes `{"n": 1, "unit": "m"}`."""

from typing import Any


def add_unit(payload: dict[str, Any]) -> dict[str, Any]:
    return {"unit": "m", **payload}


def add_unit_but_for_two(payload: dict[str, Any]) -> dict[str, Any]:
    """Fails for 2, makes an invalid payload of 3, and changes 4 again and again."""
    number = payload.get("n")
    if number == 2:
        raise ValueError("two has no unit")
    changed: dict[Any, dict[str, Any]] = {3: {"n": "three", "unit": "m"}, 4: {"n": 4, "grows": [payload]}}
    return changed.get(number, add_unit(payload))
