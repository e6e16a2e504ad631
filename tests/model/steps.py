"""The steps of callers, stream, workers, schedules and operators, each with its action on both sides."""

from collections.abc import Callable
from typing import Final

from tests.model import model_types
from tests.model.comparison import Comparison, Step
from tests.model.model_types import DAY, Ending, Message, SubmitRequest, Worker
from tests.model.shipped_system import TENANT
from tests.model.workers import ShippedWorker, submission
from tidemill.domain import job as documents
from tidemill.domain.errors import InvalidPayloadError, KeyReusedError, NotAllowedNowError

#: Longer than a job can be late before it dies undeliverable.
_ONLY_RECONCILE_DAYS: Final = 8


def submit(comparison: Comparison, request: SubmitRequest) -> Step:
    def act_on_shipped() -> str:
        comparison.requests = list(dict.fromkeys((*comparison.requests, request)))
        shipped = comparison.shipped
        try:
            accepted = shipped.submit(submission(request), tenant=TENANT, trace=shipped.new_token())
        except (InvalidPayloadError, KeyReusedError) as refused:
            return "invalid" if isinstance(refused, InvalidPayloadError) else "key reused"
        shipped.names.setdefault(accepted.job.id, f"{request.name}{shipped.now // model_types.PERIOD:.0f}")
        return "replayed" if accepted.replayed else "accepted"

    return Step(f"submit({request})", act_on_shipped, lambda: comparison.reference.submit(request))


def cancel(comparison: Comparison, name: str) -> Step:
    control, job_id = comparison.shipped.control, comparison.id(name)
    return Step(
        f"cancel {name}", lambda: _state(control.cancel, TENANT, job_id), lambda: comparison.reference.cancel(name)
    )


def retry(comparison: Comparison, name: str) -> Step:
    control, job_id = comparison.shipped.control, comparison.id(name)
    return Step(
        f"retry {name}",
        lambda: _state(control.redrive, TENANT, job_id),
        lambda: comparison.reference.redrive(name),
    )


def publish(comparison: Comparison, name: str) -> Step:
    """Publish all unpublished changes of a job."""

    def act_on_reference() -> None:
        stream = comparison.reference.stream
        comparison.published[name] = [change for change in stream if change[1].name == name]
        comparison.reference.stream = [change for change in stream if change[1].name != name]
        _publish(comparison, name)

    return Step(f"publish {name}", lambda: comparison.shipped.publish(comparison.key(name)), act_on_reference)


def publish_again(comparison: Comparison, name: str) -> Step:
    """Publish the last changes of a job again."""
    key = comparison.key(name)
    return Step(
        f"publish {name} again", lambda: comparison.shipped.publish_again(key), lambda: _publish(comparison, name)
    )


def take(comparison: Comparison, message: Message) -> Step:
    """A new worker takes the message."""
    number = comparison.workers_started + 1

    def act_on_shipped() -> None:
        comparison.workers_started = number
        comparison.workers[number] = Worker(number, comparison.reference.now)
        comparison.shipped_workers[number] = ShippedWorker(comparison.shipped, number, comparison.shipped.sent(message))
        comparison.shipped_workers[number].start()

    return Step(
        f"worker {number} takes {message}",
        act_on_shipped,
        lambda: comparison.reference.deliver(comparison.workers[number], message),
        number=number,
    )


def end(comparison: Comparison, number: int, ending: Ending) -> Step:
    shipped_worker, worker = comparison.shipped_workers[number], comparison.workers[number]
    description = f"worker {number} ends {worker.runs.name}, {ending}"
    return Step(
        description, lambda: shipped_worker.end(ending), lambda: comparison.reference.end(worker, ending), number=number
    )


def save(comparison: Comparison, number: int) -> Step:
    shipped_worker, worker, value = (
        comparison.shipped_workers[number],
        comparison.workers[number],
        len(comparison.story),
    )
    description = f"worker {number} saves a checkpoint of {worker.runs.name}"
    return Step(
        description,
        lambda: shipped_worker.save_checkpoint(value),
        lambda: comparison.reference.checkpoint(worker, value),
        number=number,
    )


def time_out(comparison: Comparison, number: int) -> Step:
    shipped_worker, worker = comparison.shipped_workers[number], comparison.workers[number]
    description = f"worker {number} times out"
    return Step(description, shipped_worker.time_out, lambda: comparison.reference.time_out(worker), number=number)


def kill(comparison: Comparison, number: int) -> Step:
    """The worker dies without a write, so the store and the reference do not change."""

    def act_on_shipped() -> None:
        comparison.killed_workers.append(comparison.shipped_workers.pop(number))
        del comparison.workers[number]

    return Step(f"worker {number} dies", act_on_shipped)


def lose_response(comparison: Comparison) -> Step:
    """The SDK sends the next write twice. The reference does not change."""
    return Step("the answer to the next write is lost", comparison.shipped.send_twice)


def wait(comparison: Comparison, seconds: float) -> Step:
    return Step(f"{seconds:g} s pass", lambda: _at(comparison, comparison.reference.now + seconds))


def wake(comparison: Comparison) -> Step:
    return Step("wake", comparison.shipped.wake, comparison.reference.wake)


def reconcile(comparison: Comparison) -> Step:
    return Step("reconcile", comparison.shipped.reconcile, comparison.reference.reconcile)


def only_reconcile(comparison: Comparison) -> Step:
    def act_on_shipped() -> None:
        for _ in range(_ONLY_RECONCILE_DAYS):
            _at(comparison, comparison.reference.now + DAY)
            comparison.shipped.reconcile()
            comparison.reference.reconcile()

    return Step(f"for {_ONLY_RECONCILE_DAYS} days nothing but reconcile works", act_on_shipped)


def expire(comparison: Comparison) -> Step:
    def act_on_reference() -> None:
        jobs = comparison.reference.jobs
        for name in [name for name, job in jobs.items() if job.expires < comparison.reference.now]:
            jobs.pop(name).state = "gone"

    return Step("the table deletes expired items", comparison.shipped.expire, act_on_reference)


def _publish(comparison: Comparison, name: str) -> None:
    for before, after in comparison.published.get(name, []):
        comparison.reference.publish(before, after)


def _at(comparison: Comparison, time: float) -> None:
    comparison.reference.now = time
    comparison.shipped.at(time)


def _state(ask: Callable[..., documents.Job | None], *of: str, **more: str) -> str:
    """The state of a job after a request, accepted or not."""
    try:
        job = ask(*of, **more)
    except NotAllowedNowError as refused:
        return refused.current.state
    return job.state if job else "not found"
