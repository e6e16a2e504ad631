"""The HTTP requests and the JSON that the documents show."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tests.support.document_blocks import Block, all_blocks

_REQUEST: Final = re.compile(r"(GET|POST|DELETE) (/\S*)\n")
_ANSWER: Final = re.compile(r"(\d{3}) [A-Z]")


@dataclass(frozen=True, slots=True)
class DocumentedRequest:
    block: Block
    method: str
    #: With the query.
    path: str
    headers: Mapping[str, str]
    body: str
    #: The block after it, if that is its answer.
    answer: Block | None

    def __str__(self) -> str:
        return f"{self.block.page} {self.method} {self.path}"

    @property
    def status(self) -> int | None:
        """The status of the documented answer."""
        return int(self.answer.text[:3]) if self.answer else None


def requests() -> Sequence[DocumentedRequest]:
    blocks = [*all_blocks(), Block("", 0, "", "")]
    return [
        DocumentedRequest(
            block,
            found[1],
            found[2],
            dict(re.findall(r"^([\w-]+): (.+)$", block.text.partition("\n\n")[0], re.MULTILINE)),
            block.text.partition("\n\n")[2],
            following if following.page == block.page and _ANSWER.match(following.text) else None,
        )
        for block, following in pairwise(blocks)
        if (found := _REQUEST.match(block.text))
    ]


def json_parts() -> Iterator[tuple[Block, Any]]:
    """What each block with JSON holds, without its ellipses. Raises `ValueError` for text that is not JSON."""
    for block in all_blocks():
        http = _REQUEST.match(block.text) or _ANSWER.match(block.text)
        text = block.text.partition("\n\n")[2] if http else block.text
        if block.tag != "python" and re.match(r"\s*[{\"]", text):
            try:
                yield block, json_of(text)
            except ValueError as error:
                raise ValueError(f"{block}: {error}") from None


def json_of(text: str) -> Any:
    """An ellipsis stands for further members; one within a text is a part of it."""
    whole = re.sub(r",\s*…", "", text)
    # A page may show one member of an object.
    return json.loads(whole if whole.lstrip().startswith("{") else f"{{{whole}}}")
