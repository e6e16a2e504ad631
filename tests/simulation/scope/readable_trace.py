"""One schedule as a person reads it: who did what, in which order, and what befell them."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tests.simulation.world.trace import moment

#: What carries a job's name in a queue, and what is dead has more to say.
_BODY: Final = re.compile(r'\{"schema".*?"id":"([^"]*)","generation":(\d+).*\}')
_TENANT: Final = re.compile(r"\d{12}:\w+#")


def story(lines: Iterable[tuple[int, str, str]], names: Mapping[str, str]) -> str:
    """`names` are the ids of the jobs, by what a person calls them."""
    told = [f"  {moment(at_ms)}  {who:<16} {_plain(what, names)}" for at_ms, who, what in lines]
    return "\n".join(line for line, before in zip(told, ["", *told], strict=False) if line != before)


def _plain(what: str, names: Mapping[str, str]) -> str:
    text = _TENANT.sub("", _BODY.sub(r"\1 g\2", what))
    for name, job_id in names.items():
        text = text.replace(job_id, name)
    return text
