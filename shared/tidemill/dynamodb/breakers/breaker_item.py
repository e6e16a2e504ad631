"""The breaker of a downstream in DynamoDB: one item, which is also the line of the jobs that wait for it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState, Callers, window_is_over
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.time_constants import MILLISECOND
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.limits import limit_item
from tidemill.names import TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Not `state`, which only the document of a job has.
_STATE: Final = "circuit"
_PROBE: Final = "probe"
_FAILED_PROBE: Final = "failed_probe"
_LAST_CALL: Final = "counted_call"
_WINDOW: Final = "window_from"
_INTERVAL: Final = "probe_interval"
_ERROR: Final = "last_error"
#: The window of the callers below. A transition begins one without callers.
_CALLERS_OF: Final = "callers_of"
#: Sets of texts.
_FAILING: Final = ("failing_workers", "failing_tenants")
_SERVING: Final = ("serving_workers", "serving_tenants")
_TIMES: Final = ("since", "outage_from", _WINDOW, "called_at", "probe_at", "probe_until", "failed_probe_created")
_NUMBERS: Final = ("failures", "calls", "probes", "reopened", "version")
#: It has opened since. Failures count only while it is closed.
_IS_CLOSED: Final = "(attribute_not_exists(#state) OR #state = :closed)"
#: How often a failure is counted. Each try uses the item that refused the one before.
_TRIES: Final = 4


class DynamoBreakers:
    """`BreakerStore` over one table of jobs. All methods raise `StoreUnavailableError`."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, name: str, *, consistent: bool = False) -> Breaker:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key(name), ConsistentRead=consistent)
        return _decoded(name, answer.get("Item", {}))

    def fail(
        self, seen: Breaker, policy: BreakerPolicy, *, calls: int, call: str, by: Callers, error: str, now: datetime
    ) -> Breaker:
        values = {
            ":calls": number(calls),
            ":call": text(call),
            ":error": text(error),
            ":begin": milliseconds(now - policy.window),
        }
        for _ in range(_TRIES):
            over = window_is_over(seen, policy, now=now)
            request = _first_failure(values, by, now=now) if over else _failure(values, seen.failing.more(by))
            seen = self._update(seen.name, request)
            if not seen.closed or seen.last_call == call:
                return seen
        raise StoreUnavailableError(f"other workers write the item of the breaker {seen.name}")

    def contradict(self, seen: Breaker, serving: Callers) -> Breaker:
        return self._update(seen.name, _contradiction(seen, serving))

    def move(self, seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        present = self._update(after.name, _transition(seen, after))
        # Also if the write was refused: the SDK sends an applied one again, which its own success refuses.
        return _content(present) == _content(after), present

    def _update(self, name: str, request: dict[str, Any]) -> Breaker:
        """The item after the write, or the one that refused it."""
        try:
            with translated():
                answer: Any = self._client.update_item(
                    TableName=self._table,
                    Key=_key(name),
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ClientError as error:
            return _decoded(name, refusing_item(error) or {})
        return _decoded(name, answer["Attributes"])


def _content(breaker: Breaker) -> Sequence[Any]:
    """Tells the transition of one worker from that of another."""
    times = (milliseconds(breaker.since), milliseconds(breaker.probe_at))
    return breaker.version, breaker.state, breaker.probe, *times


def _failure(values: Item, by: Callers) -> dict[str, Any]:
    failing = _sets(_FAILING, by)
    return _counting(
        f"ADD #failures :one, #calls :calls{_each(failing, ', #{0} :{0}')} SET #call = :call, #error = :error"
        " REMOVE #ttl",
        # The window is over, and the failures of an earlier one do not count.
        "#window > :begin",
        values,
        failing,
    )


def _first_failure(values: Item, by: Callers, *, now: datetime) -> dict[str, Any]:
    failing = _sets(_FAILING, by)
    return _counting(
        "SET #failures = :one, #calls = :calls, #window = :now, #of = :now, #call = :call, #error = :error"
        f"{_each(failing, ', #{0} = :{0}')} REMOVE #ttl{_each(_SERVING, ', {0}')}",
        # Another worker has begun a window since, and its failures count.
        "(attribute_not_exists(#window) OR #window <= :begin)",
        {**values, ":now": milliseconds(now)},
        failing,
        {"#of": _CALLERS_OF},
    )


def _counting(
    expression: str, in_window: str, values: Item, failing: Item, names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    conditions = [
        in_window,
        _IS_CLOSED,
        # The SDK sends an applied write again: it must count once.
        "(attribute_not_exists(#call) OR #call <> :call)",
    ]
    return {
        "UpdateExpression": expression,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {
            "#failures": "failures",
            "#calls": "calls",
            "#window": _WINDOW,
            "#call": _LAST_CALL,
            "#error": _ERROR,
            "#state": _STATE,
            "#ttl": TTL_ATTRIBUTE,
            **{f"#{name}": name for name in failing},
            **names,
        },
        "ExpressionAttributeValues": {
            **values,
            ":one": number(1),
            ":closed": text(BreakerState.CLOSED),
            **{f":{name}": value for name, value in failing.items()},
        },
    }


def _contradiction(seen: Breaker, serving: Callers) -> dict[str, Any]:
    sets = _sets(_SERVING, serving)
    return {
        "UpdateExpression": f"ADD {_each(sets, '#{0} :{0}, ')[:-2]}",
        # Another window has begun since: its first failure may be later than these successes.
        "ConditionExpression": f"#of = :of AND {_IS_CLOSED}",
        "ExpressionAttributeNames": {"#of": _CALLERS_OF, "#state": _STATE, **{f"#{name}": name for name in sets}},
        "ExpressionAttributeValues": {
            ":of": milliseconds(seen.window_from),
            ":closed": text(BreakerState.CLOSED),
            **{f":{name}": value for name, value in sets.items()},
        },
    }


def _sets(names: tuple[str, str], callers: Callers) -> Item:
    """By attribute. DynamoDB has no empty set."""
    pairs = zip(names, (callers.workers, callers.tenants), strict=True)
    return {name: {"SS": sorted(each)} for name, each in pairs if each}


def _each(names: Iterable[str], template: str) -> str:
    return "".join(template.format(name) for name in names)


def _transition(seen: Breaker, after: Breaker) -> dict[str, Any]:
    values = {name: milliseconds(getattr(after, name)) for name in _TIMES}
    values |= {name: number(getattr(after, name)) for name in _NUMBERS}
    values |= {
        _STATE: text(after.state),
        _INTERVAL: number(after.probe_interval // MILLISECOND),
        _PROBE: text("#".join(after.probe or ())),
        _FAILED_PROBE: text("#".join(after.failed_probe or ())),
    }
    if after.last_error != seen.last_error:
        # Only of a failed probe. Another worker may have counted a failure since, and its error stays.
        values[_ERROR] = text(after.last_error)
    names = {f"#{name}": name for name in (*values, TTL_ATTRIBUTE, limit_item.PROMISED)}
    placeholders = {f":{name}": value for name, value in values.items()}
    if seen.version:
        # Another worker has moved the breaker since it was read.
        condition = "#version = :seen"
        placeholders[":seen"] = number(seen.version)
    else:
        # Another worker has made the first transition since.
        condition = "attribute_not_exists(#version)"
    # The times that were promised before count no more: those jobs are parked again, or start.
    sets = ", ".join(f"#{name} = :{name}" for name in values)
    return {
        "UpdateExpression": f"SET {sets} REMOVE #{TTL_ATTRIBUTE}, #{limit_item.PROMISED}",
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": placeholders,
    }


def _decoded(name: str, item: Item) -> Breaker:
    found: dict[str, Any] = {each: from_milliseconds(item[each]) for each in _TIMES if each in item}
    found |= {each: int(item[each]["N"]) for each in _NUMBERS if each in item}
    if _STATE in item:
        found["state"] = BreakerState(item[_STATE]["S"])
        found |= {each: _pair(item[each]["S"]) for each in (_PROBE, _FAILED_PROBE) if each in item}
        found["probe_interval"] = timedelta(milliseconds=int(item[_INTERVAL]["N"]))
    if _ERROR in item:
        found[_ERROR] = item[_ERROR]["S"]
    if _LAST_CALL in item:
        found["last_call"] = item[_LAST_CALL]["S"]
    if item.get(_CALLERS_OF) == item.get(_WINDOW):
        for field, names in (("failing", _FAILING), ("serving", _SERVING)):
            found[field] = Callers(*(frozenset(item[each]["SS"]) if each in item else frozenset() for each in names))
    return Breaker(name=name, **found)


def _pair(joined: str) -> tuple[str, str] | None:
    """The tenant and the id of a job."""
    tenant, _, job_id = joined.rpartition("#")
    return (tenant, job_id) if job_id else None


def _key(name: str) -> Item:
    return limit_item.item_key(Line.for_breaker(name))
