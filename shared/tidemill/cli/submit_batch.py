"""`tidemill submit --batch`: a job for each line of a file, a hundred in a request, a line of answer for each."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import click

from tidemill.cli.api_call import call, refusal
from tidemill.cli.errors import ExplainedError
from tidemill.cli.formatting import count, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import decoded, read_text
from tidemill.cli.output import progress_bar, say
from tidemill.domain.errors import TidemillError
from tidemill.names import LARGEST_BATCH, LARGEST_BATCH_BODY_BYTES

_HINT: Final = "--batch"
_OPENING, _CLOSING = '{"jobs": [', "]}"
#: What the jobs of one request may take, each with the comma after it.
_ROOM_BYTES: Final = LARGEST_BATCH_BODY_BYTES - len(_OPENING + _CLOSING)
_REPEAT: Final = "Run it again with the same --key: what was accepted is not submitted twice."
_REPEAT_UNKEYED: Final = "With a --key, or keys in the lines, it could be run again without making second jobs."


@dataclass(frozen=True, slots=True)
class _Line:
    """One submission, as written, and where it stood."""

    number: int
    text: str

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode()) + 1


def submit_batch(installation: Installation, name: str, *, key: str | None) -> None:
    lines = _read(name, key=key)
    accepted = replayed = sent = 0
    try:
        with progress_bar("submitting", len(lines)) as advance:
            for chunk in _chunks(lines):
                for line, answer in zip(chunk, _send(installation, chunk), strict=True):
                    accepted += "job" in answer
                    replayed += answer["status"] == HTTPStatus.OK
                    _show(line, answer)
                    advance()
                sent += len(chunk)
    except TidemillError as error:
        raise ExplainedError(
            f"only the first {sent} of {count(len(lines), 'line')} have an answer; of the next "
            f"{min(LARGEST_BATCH, len(lines) - sent)} at most it is unknown whether they were accepted",
            remedy=_REPEAT if key else _REPEAT_UNKEYED,
        ) from error
    before = f", {replayed} of them there already" if replayed else ""
    said = f"{accepted} of {count(len(lines), 'job')} accepted{before}"
    if accepted < len(lines):
        raise ExplainedError(said, remedy=_REPEAT if key else _REPEAT_UNKEYED)
    say(f"{said}.")


def _read(name: str, *, key: str | None) -> Sequence[_Line]:
    """Every line, looked at before anything is sent. Empty ones are left out."""
    lines: list[_Line] = []
    for number, text in enumerate(read_text(name, hint=_HINT).split("\n"), start=1):
        if not text.strip():
            continue
        hint = f"{_HINT}, line {number}"
        submission = decoded(text, hint=hint)
        if not isinstance(submission, dict):
            raise click.BadParameter('a line is a JSON object, such as {"type": "text.count"}', param_hint=hint)
        keyed = key is not None and "idempotency_key" not in submission and "unique" not in submission
        line = _Line(number, _with_key(text, f"{key}-{number}", alone=not submission) if keyed else text.strip())
        if line.size_bytes > _ROOM_BYTES:
            raise click.BadParameter(f"{line.size_bytes} bytes are more than a request may have", param_hint=hint)
        lines.append(line)
    if not lines:
        raise click.BadParameter("there is no line in it", param_hint=_HINT)
    return lines


def _with_key(text: str, key: str, *, alone: bool) -> str:
    """As written otherwise: numbers keep their digits."""
    rest = text.strip().removeprefix("{")
    return f'{{"idempotency_key": {json.dumps(key)}{"" if alone else ","}{rest}'


def _chunks(lines: Sequence[_Line]) -> Iterator[Sequence[_Line]]:
    chunk: list[_Line] = []
    room = _ROOM_BYTES
    for line in lines:
        if chunk and (len(chunk) == LARGEST_BATCH or line.size_bytes > room):
            yield chunk
            chunk, room = [], _ROOM_BYTES
        chunk.append(line)
        room -= line.size_bytes
    yield chunk


def _send(installation: Installation, chunk: Sequence[_Line]) -> Sequence[Any]:
    body = _OPENING + ",".join(line.text for line in chunk) + _CLOSING
    headers = {"Content-Type": "application/json"}
    answer, _ = call(installation.api, "POST", "/jobs/batch", body=body.encode(), headers=headers)
    answers: Sequence[Any] = answer["jobs"]
    return answers


def _show(line: _Line, answer: Any) -> None:
    click.echo(json.dumps({"line": line.number, **answer}, separators=(",", ":")))
    if "job" not in answer:
        say(visible_lines(f"line {line.number}: {refusal(answer['status'], answer.get('problem'))}"))
