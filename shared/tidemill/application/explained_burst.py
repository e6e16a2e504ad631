"""What `explain` says of a debounced job that waits for its time."""

from datetime import datetime

from tidemill.application.time_text import moment
from tidemill.domain.burst import Burst


def debounced(burst: Burst, when: str, now: datetime) -> str:
    same = "the same payload" if burst.key is None else f"the debounce key {burst.key}"
    sentences = [
        f"It is debounced, and runs {when}.",
        f"A submission with {same} moves it on, until {moment(burst.until, now)} at the latest.",
    ]
    if burst.moves:
        sentences.append(f"Submissions have moved it: {burst.moves}, the first {moment(burst.first_moved_at, now)}.")
    if burst.replacements:
        first = moment(burst.first_replaced_at, now)
        sentences.append(f"Submissions have replaced its payload: {burst.replacements}, the first {first}.")
    return " ".join(sentences)
