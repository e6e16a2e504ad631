"""In which order one run works for jobs of many groups."""

from tidemill.application.groups.round_robin import in_turn


def _ordered(*names: str, look: int = 1) -> list[str]:
    """A name is that of a group and a number; without a group, it is the number alone."""
    return in_turn(names, lambda name: name.rstrip("0123456789") or None, look=look)


def test_those_without_a_group_come_first_and_each_group_keeps_its_order() -> None:
    found = _ordered("a1", "a2", "1", "b1", "a3", "2", "b2")

    assert found[:2] == ["1", "2"]
    assert [sorted(found[2:4]), sorted(found[4:6]), found[6:]] == [["a1", "b1"], ["a2", "b2"], ["a3"]]


def test_each_group_is_once_among_the_first() -> None:
    groups = [f"{chr(97 + number)}{chr(97 + other)}1" for number in range(10) for other in range(10)]

    found = {name for look in range(100) for name in _ordered(*groups, look=look)[:8]}

    assert found == set(groups)


def test_the_order_is_that_of_the_look() -> None:
    groups = [f"{chr(97 + number)}1" for number in range(20)]

    assert _ordered(*groups, look=7) == _ordered(*groups, look=7) != _ordered(*groups, look=8)
