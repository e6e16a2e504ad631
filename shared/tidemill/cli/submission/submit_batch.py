"""`tidemill submit --batch`: submit one job per line of a file, up to a hundred per request."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import click

from tidemill.cli.api_call import call, problem_text
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import decoded, read_text
from tidemill.cli.output import progress_bar, say, show_json
from tidemill.domain.errors import TidemillError
from tidemill.names import LARGEST_BATCH, LARGEST_BATCH_BODY_BYTES

_HINT: Final = "--batch"
_BODY_START, _BODY_END = '{"jobs": [', "]}"
#: The most that the jobs of one request take, each with a comma.
_MAX_JOBS_BYTES: Final = LARGEST_BATCH_BODY_BYTES - len(_BODY_START + _BODY_END)
_CORRECT: Final = "Correct the refused lines. "
_REPEAT: Final = "Run the command again with the same --key: accepted lines create no second jobs."
_REPEAT_UNKEYED: Final = "A repeat may create second jobs of the lines without a key. A --key prevents that."


@dataclass(frozen=True, slots=True)
class _Line:
    """One submission, as written, and its line number."""

    number: int
    text: str

    @property
    def size_bytes(self) -> int:
        return len(self.text.encode()) + 1


def submit_batch(installation: Installation, name: str, *, key: str | None) -> None:
    try:
        lines = _read(name, key=key)
    except click.BadParameter as refused:
        raise click.BadParameter(f"{refused.message}; nothing was sent", param_hint=refused.param_hint) from refused
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
        raise CommandError(
            f"the API answered only the first {sent} of {count(len(lines), 'line')}; it is unknown whether it accepted "
            f"up to {min(LARGEST_BATCH, len(lines) - sent)} lines after them",
            remedy=_REPEAT if key else _REPEAT_UNKEYED,
        ) from error
    existing = f", {replayed} of them existed already" if replayed else ""
    summary = f"{accepted} of {count(len(lines), 'job')} accepted{existing}"
    if accepted < len(lines):
        raise CommandError(summary, remedy=_CORRECT + (_REPEAT if key else _REPEAT_UNKEYED))
    say(f"{summary}.")


def _read(name: str, *, key: str | None) -> Sequence[_Line]:
    """All lines except empty ones, checked. Raises `click.BadParameter`."""
    lines: list[_Line] = []
    for number, text in enumerate(read_text(name, hint=_HINT).split("\n"), start=1):
        if not text.strip():
            continue
        hint = f"{_HINT}, line {number}"
        submission = decoded(text, hint=hint)
        if not isinstance(submission, dict):
            raise click.BadParameter('each line must be a JSON object, such as {"type": "text.count"}', param_hint=hint)
        keyed = key is not None and "idempotency_key" not in submission and "unique" not in submission
        line = _Line(number, _with_key(text, f"{key}-{number}", alone=not submission) if keyed else text.strip())
        if line.size_bytes > _MAX_JOBS_BYTES:
            raise click.BadParameter(
                f"the line has {line.size_bytes} bytes; the limit is {_MAX_JOBS_BYTES}", param_hint=hint
            )
        lines.append(line)
    if not lines:
        raise click.BadParameter("the input has no lines", param_hint=_HINT)
    return lines


def _with_key(text: str, key: str, *, alone: bool) -> str:
    """Insert the key and keep the rest as written: decoding could change the digits of numbers."""
    rest = text.strip().removeprefix("{")
    return f'{{"idempotency_key": {json.dumps(key)}{"" if alone else ","}{rest}'


def _chunks(lines: Sequence[_Line]) -> Iterator[Sequence[_Line]]:
    chunk: list[_Line] = []
    room_bytes = _MAX_JOBS_BYTES
    for line in lines:
        if chunk and (len(chunk) == LARGEST_BATCH or line.size_bytes > room_bytes):
            yield chunk
            chunk, room_bytes = [], _MAX_JOBS_BYTES
        chunk.append(line)
        room_bytes -= line.size_bytes
    yield chunk


def _send(installation: Installation, chunk: Sequence[_Line]) -> Sequence[Any]:
    body = _BODY_START + ",".join(line.text for line in chunk) + _BODY_END
    headers = {"Content-Type": "application/json"}
    answer, _ = call(installation.api, "POST", "/jobs/batch", body=body.encode(), headers=headers)
    answers: Sequence[Any] = answer["jobs"]
    return answers


def _show(line: _Line, answer: Any) -> None:
    show_json({"line": line.number, **answer}, one_line=True)
    if "job" not in answer:
        say(visible_lines(f"line {line.number}: {problem_text(answer['status'], answer.get('problem'))}"))
