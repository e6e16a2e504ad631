"""The traceback of a failed run as a short text: the frames of its handler, then class and message of the exception."""

import traceback
from types import FrameType
from typing import Final

from tidemill.domain.errors import BatchCallError
from tidemill.domain.outcomes import storable

#: Module and qualified name of the function that calls the handler. The frames up to it are those of the engine.
_CALLER: Final = ("tidemill.application.handler_call", "call_handler")
#: How many exceptions of a chain are shown: the raised one, and the causes nearest to it.
_LONGEST_CHAIN: Final = 3
#: How many frames of one exception are shown: that of the handler, and the innermost ones.
_MOST_FRAMES: Final = 10
_CAUSED: Final = "which caused:"
_LEFT_OUT: Final = "  [frames left out]\n"


def handler_traceback(error: BaseException, *, longest: int) -> str:
    """At most `longest` characters, the innermost frame last, as Python prints it, and causes first.

    What does not fit is left out in this order: the end of a message that takes more than half of the text; the causes,
    the most distant one first; the frames, the outermost one first, but that of the handler last: it is the one that
    its author can change. An exception that no handler raised shows its innermost frames. The error of a failed call of
    a batch handler shows the one that the handler raised. Replaces lone surrogates, which neither a log nor the store
    takes.
    """
    try:
        return _of_chain(error, longest)
    except Exception:  # noqa: BLE001 - the class of the exception defines what its attributes are, and they may raise
        return f"{type(error).__name__}: its traceback could not be read"[:longest]


def _of_chain(error: BaseException, longest: int) -> str:
    raised, *causes = _chain(error.error if isinstance(error, BatchCallError) else error)
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
    last_lines = "".join(traceback.format_exception_only(error)).strip()
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
    """That of the handler, empty if no handler raised the error; and the innermost others. Each ends with a newline."""
    raised_at = list(traceback.walk_tb(error.__traceback__))
    calls = [index for index, (frame, _) in enumerate(raised_at) if _is_caller(frame)]
    if not calls:
        return "", _formatted(raised_at[-_MOST_FRAMES:])
    handler, below = raised_at[calls[0] + 1 : calls[0] + 2], raised_at[calls[0] + 2 :]
    inner = below[1 - _MOST_FRAMES :]
    return "".join(_formatted(handler)) + _LEFT_OUT * (len(below) > len(inner)), _formatted(inner)


def _formatted(frames: list[tuple[FrameType, int]]) -> list[str]:
    return [storable(text) for text in traceback.StackSummary.extract(iter(frames)).format()]


def _is_caller(frame: FrameType) -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_qualname) == _CALLER
