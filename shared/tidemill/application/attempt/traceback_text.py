"""The traceback of a failed run as a short text: the frames of its handler, then class and message of the exception."""

import traceback
from types import FrameType
from typing import Final

from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.error_text import class_name, leaves, storable, text_of

#: Module and qualified name of the function that calls the handler. The frames up to it are those of the engine.
_CALLER: Final = ("tidemill.application.attempt.handler_call", "call_handler")
#: How many exceptions of a chain are shown: the raised one, and the causes nearest to it. Of a group: so many of its
#: errors, the one that decides included.
_LONGEST_CHAIN: Final = 3
#: How many frames of one exception are shown: that of the handler, and the innermost ones.
_MOST_FRAMES: Final = 10
_MOST_NOTES: Final = 10
_CAUSED: Final = "which caused:"
_HOLDS: Final = "which holds:"
_BESIDE: Final = "beside:"
_LEFT_OUT: Final = "  [frames left out]\n"


def handler_traceback(error: BaseException, *, longest: int) -> str:
    """At most `longest` characters, the innermost frame last, as Python prints it, and causes first.

    What does not fit is left out in this order: the end of a message that takes more than half of the text; the causes,
    the most distant one first; the frames, the outermost one first, but that of the handler last: it is the one that
    its author can change. An exception that no handler raised shows its innermost frames. A group shows the error that
    decides, last; then, while there is room, itself before it, and others of its errors in between. Replaces lone
    surrogates, which neither a log nor the store takes.
    """
    try:
        return _of_group(error, longest) if isinstance(error, BaseExceptionGroup) else _of_chain(error, longest)
    except BaseException:  # noqa: BLE001 - the class of the exception defines its attributes, and they may raise
        return f"{class_name(error)}: its traceback could not be read"[:longest]


def _of_group(group: "BaseExceptionGroup[BaseException]", longest: int) -> str:
    leaf = decisive(group)
    others = [each for each in leaves(group) if each is not leaf][: _LONGEST_CHAIN - 1]
    blocks = [_block(leaf, longest)]
    for each, joint in ((group, _HOLDS), *((other, _BESIDE) for other in others)):
        # The group stays first, and the error that decides last.
        longer = [*blocks[:-1], f"{_block(each, longest)}\n{joint}\n", blocks[-1]]
        if sum(map(len, longer)) <= longest:
            blocks = longer
    return "".join(blocks)


def _of_chain(error: BaseException, longest: int) -> str:
    raised, *causes = _chain(error)
    text = _block(raised, longest)
    for cause in causes:
        longer = f"{_block(cause, longest)}\n{_CAUSED}\n{text}"
        if len(longer) > longest:
            break
        text = longer
    return text


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, its cause, the cause of that, and so on."""
    chain = [error]
    while len(chain) < _LONGEST_CHAIN:
        last = chain[-1]
        cause = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if cause is None or any(cause is link for link in chain):
            break
        chain.append(cause)
    return chain


def _block(error: BaseException, longest: int) -> str:
    """The frames of one exception, then its class, message and notes."""
    handler, inner = _frames(error)
    last_lines = "\n".join([": ".join(filter(None, (_qualified(error), text_of(error)))), *_notes(error)]).strip()
    text = storable(last_lines[: longest // 2 if handler or inner else longest])
    whole = f"{handler}{''.join(inner)}{text}"
    if len(whole) <= longest:
        return whole
    first = f"{handler.removesuffix(_LEFT_OUT)}{_LEFT_OUT}" if handler else ""
    if len(first) + len(text) > longest:
        first = ""
    for frame in reversed(inner):
        if len(first) + len(frame) + len(text) > longest:
            break
        text = f"{frame}{text}"
    return f"{first}{text}"


def _frames(error: BaseException) -> tuple[str, list[str]]:
    """Return the frame of the handler, or an empty text, and the innermost others. Each ends with a newline."""
    raised_at = list(traceback.walk_tb(error.__traceback__))
    calls = [index for index, (frame, _) in enumerate(raised_at) if _is_caller(frame)]
    if not calls:
        return "", _formatted(raised_at[-_MOST_FRAMES:])
    handler, below = raised_at[calls[0] + 1 : calls[0] + 2], raised_at[calls[0] + 2 :]
    inner = below[1 - _MOST_FRAMES :]
    return "".join(_formatted(handler)) + _LEFT_OUT * (len(below) > len(inner)), _formatted(inner)


def _qualified(error: BaseException) -> str:
    """The name as Python prints it. `traceback` would read all causes for this, however many they are."""
    module = text_of(type(error), lambda class_: class_.__module__)
    name = text_of(type(error), lambda class_: class_.__qualname__)
    return name if module in {"builtins", "__main__"} else f"{module}.{name}"


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [text_of(note) for note in notes[:_MOST_NOTES]] if isinstance(notes, list) else []


def _formatted(frames: list[tuple[FrameType, int]]) -> list[str]:
    return [storable(text) for text in traceback.StackSummary.extract(iter(frames)).format()]


def _is_caller(frame: FrameType) -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_qualname) == _CALLER
