"""Whose limit a limit item is, and in which line a job waits: from the declarations and the guide of limits."""

import json
from typing import Any, Final

from tests.simulation.checks.violation import Item, map_of, text_of
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.code_versions import PRESENT, job_type
from tidemill.application.job_types import JobType
from tidemill.domain.limits.limits import Limit

_SHARED: Final = "limit:"


def limit_of(key: str) -> Limit | None:
    """The limit that is declared for this limit key."""
    whose = json.loads(key)[0]
    shared = PRESENT.job_types.with_shared_limit(whose.removeprefix(_SHARED))
    declared = shared if whose.startswith(_SHARED) else job_type(whose)
    return declared.limit if declared else None


def types_of(key: str) -> frozenset[str]:
    """The job types whose runs count for this limit key."""
    types = (job_type(name) for name in PRESENT.job_types.names())
    return frozenset(each.name for each in types if _whose(each) == json.loads(key)[0])


def key_of_run(run: HandlerRun) -> str:
    """The limit key that counts a run of a type with a limit."""
    return json.dumps([*_parts(job_type(run.kind), run.limit_key or "", run.lane, run.tenant)])


def limit_in_words(key: str) -> str:
    """What kind of limit it is, as operators read it."""
    whose, _, *further = json.loads(key)
    lane = next((f" of lane {part['lane']}" for part in further if isinstance(part, dict)), "")
    shared = f"shared limit {whose.removeprefix(_SHARED)}" if whose.startswith(_SHARED) else "limit"
    return shared + lane


def waits_in_wrong_line(tenant: str, item: Item) -> str | None:
    """Why a job that waits for its limit stands in the line of another one. The text in its key is not compared."""
    line, declared = json.loads(text_of(map_of(item, "wait"), "key")), job_type(text_of(item, "type"))
    own = _parts(declared, line[1], text_of(item, "lane"), tenant)
    return None if line == own else f"{line}, and not {own}"


def _parts(declared: JobType, text: str, lane: str, tenant: str) -> list[Any]:
    lanes = [{"lane": lane}] if declared.limit_per_lane else []
    return [_whose(declared), text, *lanes, *([] if declared.limit_spans_tenants else [tenant])]


def _whose(declared: JobType) -> str:
    return _SHARED + declared.shared_limit if declared.shared_limit else declared.name
