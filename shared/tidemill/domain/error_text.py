"""Any exception as text: its class, its message, and the first errors of a group. Pure, and nothing here raises.

A handler defines what `str` and `repr` do with its exceptions, so they may raise, also `SystemExit`, return no text, or
return a very long one. Each place that shows an error of a handler reads it here.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

#: The longest text of an error that is stored in the documents of the engine, and that is read of any exception.
_LONGEST_ERROR: Final = 300
_LONGEST_READ: Final = 4 * 1024
_LONGEST_CLASS: Final = 100
_UNREADABLE: Final = "the text of the error could not be read"
#: How many exceptions of a group are looked at. A group of a million must not take longer than its handler.
_MOST_LEAVES: Final = 1_000
#: How many others of its group a text shows beside the first one, and how much of each.
_MOST_OTHERS: Final = 3
_LONGEST_OTHER: Final = 100


def text_of(value: object, read: Callable[[Any], str] = str) -> str:
    """What `str`, or `read`, says of an exception or of a text, without lone surrogates, and of bounded length."""
    try:
        # A subclass of `str` may define how it is cut, so the method of `str` cuts it.
        return storable(str.__getitem__(read(value), slice(_LONGEST_READ)))
    except BaseException:  # noqa: BLE001 - the text of an error must end no thread, and hide no error
        return _UNREADABLE


def class_name(error: BaseException) -> str:
    return text_of(type(error), lambda class_: class_.__name__)[:_LONGEST_CLASS]


def error_text(error: BaseException) -> str:
    """Class and message; of a group, those of its first error, and then the others."""
    first = next(leaves(error))
    return f"{class_name(first)}: {message_of(error, first)}"[:_LONGEST_ERROR]


def message_of(error: BaseException, leaf: BaseException) -> str:
    """The message of `error`. Of a group: that of its error `leaf`, then its own, then some of its other errors."""
    if not isinstance(error, BaseExceptionGroup):
        return text_of(error)
    others = (f"{class_name(each)}: {text_of(each)}"[:_LONGEST_OTHER] for each in leaves(error) if each is not leaf)
    shown = list(islice(others, _MOST_OTHERS + 1))
    more = ["more"] if len(shown) > _MOST_OTHERS else []
    beside = f"; beside {'; '.join([*shown[:_MOST_OTHERS], *more])}" if shown else ""
    return f"{text_of(leaf)[:_LONGEST_ERROR]} (in the group: {group_message(error)[:_LONGEST_OTHER]}{beside})"


def group_message(group: "BaseExceptionGroup[Any]") -> str:
    """Without the count of its errors, which `str` appends."""
    return text_of(_member(group, "message"))


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group and in the groups in it, in their order, but of a very large one only the first.

    At least one. Yields `error` alone, unless it is a group.
    """
    seen, left = 0, [error]
    while left and seen < _MOST_LEAVES:
        seen += 1
        each = left.pop()
        # The last that is looked at counts as one, also if it is a group.
        if isinstance(each, BaseExceptionGroup) and seen < _MOST_LEAVES:
            left += reversed(_member(each, "exceptions")[:_MOST_LEAVES])
        else:
            yield each


def _member(group: "BaseExceptionGroup[Any]", name: str) -> Any:
    """Read the member that Python keeps: a subclass may define properties of these names."""
    return getattr(BaseExceptionGroup, name).__get__(group)


def storable(text: str) -> str:
    """Replace lone surrogates, which the store refuses."""
    return text.encode(errors="replace").decode()
