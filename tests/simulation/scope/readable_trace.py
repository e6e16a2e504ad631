"""A trace of one schedule for a reader: the calls of each actor in order, and their fates."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tests.simulation.world.trace import moment

#: The body of a message. A DLQ message has further fields.
_BODY: Final = re.compile(r'\{"schema".*?"id":"([^"]*)","generation":(\d+).*\}')
_TENANT: Final = re.compile(r"\d{12}:\w+#")


def story(lines: Iterable[tuple[int, str, str]], names: Mapping[str, str]) -> str:
    """`names` maps the readable name of each job to its id."""
    readable = [f"  {moment(at_ms)}  {who:<16} {_readable(what, names)}" for at_ms, who, what in lines]
    return "\n".join(line for line, before in zip(readable, ["", *readable], strict=False) if line != before)


def _readable(what: str, names: Mapping[str, str]) -> str:
    text = _TENANT.sub("", _BODY.sub(r"\1 g\2", what))
    for name, job_id in names.items():
        text = text.replace(job_id, name)
    return text
