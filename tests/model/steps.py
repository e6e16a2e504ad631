"""The steps: what callers, the stream, workers, clocks and people do, each to both sides."""

from collections.abc import Callable
from typing import Final

from tests.model import model_types
from tests.model.comparison import Both, Step
from tests.model.model_types import DAY, Asked, Ending, Message, Worker
from tests.model.shipped_system import TENANT
from tests.model.workers import Hand, submission
from tidemill.domain import job as documents
from tidemill.domain.errors import InvalidPayloadError, KeyReusedError, NotAllowedNowError

#: Longer than a job is nudged in vain before it dies.
_NEGLECTED_DAYS: Final = 8


def submit(both: Both, asked: Asked) -> Step:
    def really() -> str:
        both.asked = list(dict.fromkeys((*both.asked, asked)))
        bench = both.bench
        try:
            accepted = bench.submit(submission(asked), tenant=TENANT, trace=bench.new_token())
        except (InvalidPayloadError, KeyReusedError) as refused:
            return "invalid" if isinstance(refused, InvalidPayloadError) else "key reused"
        bench.names.setdefault(accepted.job.id, f"{asked.name}{bench.now // model_types.PERIOD:.0f}")
        return "replayed" if accepted.replayed else "accepted"

    return Step(f"submit({asked})", really, lambda: both.reference.submit(asked))


def cancel(both: Both, name: str) -> Step:
    control, job_id = both.bench.control, both.id(name)
    return Step(f"cancel {name}", lambda: _state(control.cancel, TENANT, job_id), lambda: both.reference.cancel(name))


def retry(both: Both, name: str) -> Step:
    control, job_id = both.bench.control, both.id(name)
    return Step(
        f"retry {name}",
        lambda: _state(control.redrive, TENANT, job_id, by="ada"),
        lambda: both.reference.redrive(name),
    )


def publish(both: Both, name: str) -> Step:
    """All that the stream has yet to tell of a job."""

    def should() -> None:
        stream = both.reference.stream
        both.told[name] = [change for change in stream if change[1].name == name]
        both.reference.stream = [change for change in stream if change[1].name != name]
        _publish(both, name)

    return Step(f"publish {name}", lambda: both.bench.publish(both.key(name)), should)


def publish_again(both: Both, name: str) -> Step:
    """What it told last."""
    key = both.key(name)
    return Step(f"publish {name} again", lambda: both.bench.publish_again(key), lambda: _publish(both, name))


def take(both: Both, message: Message) -> Step:
    """By a worker of its own."""
    number = both.hired + 1

    def really() -> None:
        both.hired = number
        both.workers[number] = Worker(number, both.reference.now)
        both.hands[number] = Hand(both.bench, number, both.bench.sent(message))
        both.hands[number].begins()

    return Step(
        f"worker {number} takes {message}",
        really,
        lambda: both.reference.deliver(both.workers[number], message),
        number=number,
    )


def end(both: Both, number: int, ending: Ending) -> Step:
    hand, worker = both.hands[number], both.workers[number]
    told = f"worker {number} ends {worker.runs.name}, {ending}"
    return Step(told, lambda: hand.ends(ending), lambda: both.reference.ends(worker, ending), number=number)


def save(both: Both, number: int) -> Step:
    hand, worker, value = both.hands[number], both.workers[number], len(both.story)
    told = f"worker {number} saves a checkpoint of {worker.runs.name}"
    return Step(told, lambda: hand.saves(value), lambda: both.reference.checkpoint(worker, value), number=number)


def time_out(both: Both, number: int) -> Step:
    hand, worker = both.hands[number], both.workers[number]
    told = f"the time of worker {number} is up"
    return Step(told, hand.times_out, lambda: both.reference.times_out(worker), number=number)


def kill(both: Both, number: int) -> Step:
    """Neither the store nor the reference hears of it."""

    def really() -> None:
        both.killed.append(both.hands.pop(number))
        del both.workers[number]

    return Step(f"worker {number} dies", really)


def lose_an_answer(both: Both) -> Step:
    """The SDK sends the next write twice, of which the reference need not know."""
    return Step("the answer to the next write is lost", both.bench.send_twice)


def wait(both: Both, seconds: float) -> Step:
    return Step(f"{seconds:g} s pass", lambda: _at(both, both.reference.now + seconds))


def wake(both: Both) -> Step:
    return Step("wake", both.bench.wake, both.reference.wake)


def reconcile(both: Both) -> Step:
    return Step("reconcile", both.bench.reconcile, both.reference.reconcile)


def neglect(both: Both) -> Step:
    def really() -> None:
        for _ in range(_NEGLECTED_DAYS):
            _at(both, both.reference.now + DAY)
            both.bench.reconcile()
            both.reference.reconcile()

    return Step(f"for {_NEGLECTED_DAYS} days nothing but reconcile works", really)


def expire(both: Both) -> Step:
    def should() -> None:
        jobs = both.reference.jobs
        for name in [name for name, job in jobs.items() if job.expires < both.reference.now]:
            jobs.pop(name).state = "gone"

    return Step("the table deletes what is past its time", both.bench.expire, should)


def _publish(both: Both, name: str) -> None:
    for before, after in both.told.get(name, []):
        both.reference.publish(before, after)


def _at(both: Both, time: float) -> None:
    both.reference.now = time
    both.bench.at(time)


def _state(ask: Callable[..., documents.Job | None], *of: str, **more: str) -> str:
    """What a job is once it was asked for something, granted or not."""
    try:
        job = ask(*of, **more)
    except NotAllowedNowError as refused:
        return refused.current.state
    return job.state if job else "not found"
