"""The traceback of a failed run as a short text: the frames of its handler, then class and message of the exception."""

import traceback
from types import FrameType
from typing import Final

from tidemill.domain.outcomes import storable

#: Module and qualified name of the function that calls the handler. The frames up to it are those of the engine.
_CALLER: Final = ("tidemill.application.attempt", "Attempt._call_handler")
#: How many exceptions of a chain are shown: the raised one, and the causes nearest to it.
_LONGEST_CHAIN: Final = 3
#: How many frames of one exception are shown: the innermost ones.
_MOST_FRAMES: Final = 10
_CAUSED: Final = "which caused:"


def handler_traceback(error: BaseException, *, longest: int) -> str:
    """At most `longest` characters, the innermost frame last, as Python prints it, and causes first.

    What does not fit is left out in this order: the end of a message that takes more than half of the text; the causes,
    the most distant one first; the frames, the outermost one first. An exception that no handler raised shows its
    innermost frames. Replaces lone surrogates, which neither a log nor the store takes.
    """
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
    frames = _frames(error)
    last_lines = "".join(traceback.format_exception_only(error)).strip()
    text = storable(last_lines[: longest // 2 if frames else longest])
    for frame in reversed(frames):
        longer = f"{storable(frame)}{text}"
        if len(longer) > longest:
            break
        text = longer
    return text


def _frames(error: BaseException) -> list[str]:
    """Each frame as text that ends with a line break."""
    raised_at = list(traceback.walk_tb(error.__traceback__))
    calls = [index for index, (frame, _) in enumerate(raised_at) if _is_caller(frame)]
    below = raised_at[calls[0] + 1 :] if calls else raised_at
    return traceback.StackSummary.extract(iter(below[-_MOST_FRAMES:])).format()


def _is_caller(frame: FrameType) -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_qualname) == _CALLER
