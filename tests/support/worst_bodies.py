"""Bodies that take the most time or memory of a route for their size. A caller may send each of them at any time."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tidemill.domain.waiting.signals import LARGEST_SIGNAL_BYTES
from tidemill.names import LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES

_ANY, _NESTED = "test.scripted", "test.nested"
#: Values whose JSON takes the most memory for its size.
_GROWING: Final[Mapping[str, str]] = {
    "empty lists": "[]",
    "empty objects": "{}",
    "small objects": '{"":0}',
    "short texts": '"ab"',
    "numbers": "1.5",
}


@dataclass(frozen=True, slots=True)
class WorstBody:
    """`of_size` makes one of about that many bytes."""

    name: str
    route: str
    most_bytes: int
    of_size: Callable[[int], str]

    def __str__(self) -> str:
        return f"{self.route}: {self.name}"


def worst_bodies() -> Iterator[WorstBody]:
    """With `{id}` in a route for that of a flow."""
    for name, item in _GROWING.items():
        yield _job(name, partial(_payload, item))
        yield _flow(f"a payload of {name}", partial(_payloads, item))
    yield _job("wrong numbers", lambda size: _object(_NESTED, f'{{"numbers":{_list(_wrong, size)}}}'))
    yield _job("wrong numbers under a long name", lambda size: _object(_NESTED, _under_long_names(1, size)))
    yield _job("wrong numbers under many names", lambda size: _object(_NESTED, _under_long_names(90, size)))
    yield _job("unknown members", lambda size: f"{{{_members(size)}}}")
    yield _job("tags", lambda size: json.dumps({"type": _ANY, "tags": ["a"] * (size // 5 - 20)}))
    yield _flow("a cycle for each edge", lambda size: _nodes(size, lambda at: [at + 1, *_before(at)], last=True))
    yield _flow("unknown parents", lambda size: _nodes(size, lambda _at: range(1_000_000, 1_000_009)))
    yield _flow("each node follows itself", lambda size: _nodes(size, lambda at: [at] * 9))
    yield _flow("the same name", lambda size: json.dumps({"nodes": [{"name": "a", "type": _ANY}] * (size // 40 - 1)}))
    yield _flow("sound nodes", lambda size: _nodes(size, _before))
    yield _flow("a chain", lambda size: _nodes(size, lambda at: _before(at)[-1:]))
    yield _flow("nodes that are numbers", lambda size: f'{{"nodes":{_list("0", size)}}}')
    yield _flow("edges that are numbers", lambda size: f'{{"nodes":[{{"name":"a","after":{_list("0", size)}}}]}}')
    yield _flow("unknown types", lambda size: json.dumps({"nodes": [{"name": "a", "type": "b"}] * (size // 32)}))
    yield _batch("jobs that are numbers", lambda size: f'{{"jobs":{_list("0", size)}}}')
    yield _batch(
        "a hundred payloads of empty lists",
        lambda size: f'{{"jobs":[{",".join([_object(_ANY, f"""{{"a":{_list("[]", size // 100 - 60)}}}""")] * 100)}]}}',
    )
    yield _batch("unknown members", lambda size: f'{{"jobs":[{{{_members(size)}}}]}}')
    yield WorstBody("wrong members", "/events", LARGEST_BODY_BYTES, lambda size: f"{{{_members(size)}}}")
    yield WorstBody("wrong members", "/batches", LARGEST_BODY_BYTES, lambda size: f"{{{_members(size)}}}")
    yield WorstBody(
        "a cycle for each edge",
        "/flows/{id}/nodes",
        LARGEST_BODY_BYTES,
        lambda size: _nodes(size, lambda at: [at + 1, *_before(at)], last=True),
    )
    yield WorstBody("members", "/jobs/{id}/cancel", LARGEST_BODY_BYTES, lambda size: f"{{{_members(size)}}}")
    yield WorstBody("empty lists", "/jobs/{id}/signals/go", LARGEST_BODY_BYTES, lambda size: _list("[]", size))
    yield WorstBody("a signal", "/jobs/{id}/signals/go", LARGEST_SIGNAL_BYTES, lambda size: _list("[]", size - 4))


def payloads_at_limit() -> Mapping[str, str]:
    """The largest payloads whose JSON takes the most memory, by what they have."""
    return {name: f'{{"a":{_list(item, LARGEST_BODY_BYTES)}}}' for name, item in _GROWING.items()}


_wrong: Final = '""'


def _job(name: str, of_size: Callable[[int], str]) -> WorstBody:
    return WorstBody(name, "/jobs", LARGEST_BODY_BYTES, of_size)


def _batch(name: str, of_size: Callable[[int], str]) -> WorstBody:
    return WorstBody(name, "/jobs/batch", LARGEST_BATCH_BODY_BYTES, of_size)


def _flow(name: str, of_size: Callable[[int], str]) -> WorstBody:
    return WorstBody(name, "/flows", LARGEST_BATCH_BODY_BYTES, of_size)


def _list(item: str, size: int) -> str:
    return f"[{','.join([item] * max((size - 80) // (len(item) + 1), 1))}]"


def _object(type_: str, payload: str) -> str:
    return f'{{"type":"{type_}","payload":{payload}}}'


def _payload(item: str, size: int) -> str:
    return _object(_ANY, f'{{"a":{_list(item, size)}}}')


def _payloads(item: str, size: int) -> str:
    """Four nodes, each with the largest payload."""
    payload = f'{{"a":{_list(item, size // 4 - 60)}}}'
    nodes = ",".join(f'{{"name":"n{at}","type":"{_ANY}","payload":{payload}}}' for at in range(4))
    return f'{{"nodes":[{nodes}]}}'


def _under_long_names(levels: int, size: int) -> str:
    """Half of the size is the path to the wrong numbers."""
    name = "k" * (size // 2 // levels)
    payload = f'{{"numbers":{_list(_wrong, size // 2 - 16 * levels)}}}'
    for _ in range(levels):
        payload = f'{{"inner":{{"{name}":{payload}}}}}'
    return payload


def _members(size: int) -> str:
    return ",".join(f'"{at:x}":0' for at in range(size // 11))


def _before(at: int) -> list[int]:
    return list(range(max(at - 5, 0), at))


def _nodes(size: int, parents_of: Callable[[int], Any], *, last: bool = False) -> str:
    """Return as many nodes as fit. With `last`, the first one is the parent of the last one."""
    texts, left = [], size - 20
    for at in range(10_000):
        after = [f"n{parent}" for parent in parents_of(at)]
        text = json.dumps({"name": f"n{at}", "type": _ANY, "after": after}, separators=(",", ":"))
        left -= len(text) + 1
        if left < 0:
            break
        texts.append(text)
    if last:
        texts[-1] = json.dumps({"name": f"n{len(texts) - 1}", "type": _ANY, "after": ["n0"]}, separators=(",", ":"))
    return f'{{"nodes":[{",".join(texts)}]}}'
