"""The protocol in plain Python: the effect of each write on a job, its messages and its group.

It is written from the design and not from the code, so that a difference can show an error in either. It uses neither
AWS nor `shared`. Each operation returns its result. Where the design allows a random time, `chance` chooses it.
"""

import math
from collections import Counter
from collections.abc import Callable
from copy import copy
from itertools import dropwhile
from typing import Any

from tests.model import model_types
from tests.model.model_types import DAY, ENDED, Ending, Job, Message, SubmitRequest, Worker


class Reference:
    def __init__(self, chance: Callable[[str, float], float]) -> None:
        self.now = 0.0
        self.jobs: dict[str, Job] = {}
        self.group_orders: dict[str, list[Job]] = {}  # by group, the head first
        self.stream: list[tuple[Job | None, Job]] = []
        self.lane: list[Message] = []
        self.dead_letters: list[Message] = []
        self.effects: Counter[str] = Counter()
        self.slots: dict[Worker, float] = {}  # until when
        self._chance = chance

    def submit(self, request: SubmitRequest, hops: int = 0) -> str:
        name = f"{request.name}{self.now // model_types.PERIOD:.0f}" if request.unique else request.name
        if old := self.found(name):
            return "replayed" if request.unique or old.request == request else "key reused"
        if request.deadline <= self.now + request.delay:
            return "invalid"
        before, self.jobs[name] = self.jobs.get(name), (job := Job(name, request, self.now, hops))
        self._enters(job)
        self.stream[-1] = (before, copy(job))
        return "accepted"

    def publish(self, before: Job | None, after: Job) -> None:
        if before and (before.state, before.generation, before.nudged) == (after.state, after.generation, after.nudged):
            return
        if after.state in {"queued", "retrying"}:
            delay = min(max(math.ceil(after.due - self.now), 0), model_types.DELAY)
            self.lane.append(Message(after.name, after.generation, self.now + delay))
        elif after.state == "dead":
            self.dead_letters.append(Message(after.name, after.generation))
        # An end, and a job that begins to wait: whichever comes second finds the other.
        if after.state in {*ENDED, "waiting"} and after.request.group:
            self.advance(after.request.group)

    def advance(self, group: str) -> Job | None:
        order = self.group_orders[group]
        if not order or order[0].stands:
            return None
        order[:] = dropwhile(lambda job: job.state != "waiting", order[1:])
        if order:
            self._lives(order[0], "queued", max(order[0].begins, self.now))
        return order[0] if order else None

    def deliver(self, worker: Worker, message: Message) -> None:
        worker.message, job = message, self.jobs.get(message.name)
        if job is None or job.generation != message.generation or job.due > self.now:
            return worker.reported.append(self._verdict(message))
        worker.job, lease_end = job, max(worker.began + model_types.INVOCATION, self.now) + model_types.SKEW
        self._write(job, state="running", attempt=job.attempt + 1, owner=worker, due=lease_end, nudges=0)
        if job.cancel_requested:
            self._settle(worker, "cancelled")
        elif job.deadline < self.now:
            self._settle(worker, "dead", death="deadline passed")
        elif job.hops > model_types.MAX_HOPS:
            self._settle(worker, "dead", death="too many hops")
        elif job.attempt > model_types.MAX_ATTEMPTS:
            self._settle(worker, "dead", death="crashed too often")
        elif job.request.kind == "single" and any(until > self.now for until in self.slots.values()):
            self._settle(worker, "queued", self._chance(job.name, model_types.LONGEST_HOLD), attempt=job.attempt - 1)
        elif job.request.kind == "single":
            self.slots[worker] = lease_end
        return None

    def end(self, worker: Worker, ending: Ending) -> None:
        job, due = worker.runs, self.now + ending.seconds
        if ending.then and (there := self.found(ending.then.name)) and there.request != ending.then:
            ending = Ending("key reused")
        if ending.word in ENDED:
            self._settle(worker, ending.word, then=ending.then)
        elif ending.word in {"gave up", "permanent error"}:
            self._settle(worker, "dead", death=ending.word)
        elif ending.word == "snoozed":
            self._settle(worker, "queued", due, attempt=job.attempt - 1, hops=job.hops + 1)
        elif ending.word == "continued":
            self._settle(worker, "queued", due, attempt=0, hops=job.hops + 1, checkpoint=0)
        elif job.attempt >= model_types.MAX_ATTEMPTS:
            self._settle(worker, "dead", death="attempts used up")
        else:
            self._settle(worker, "retrying", due if ending.seconds else self._chance(job.name, job.longest_backoff))

    def checkpoint(self, worker: Worker, value: int) -> None:
        if worker.runs.owner is not worker or worker.timed_out:
            return self.end(worker, Ending("failed"))
        self._write(worker.runs, checkpoint=value)
        return self._settle(worker, "cancelled") if worker.runs.cancel_requested else None

    def time_out(self, worker: Worker) -> None:
        """The run has failed, although its handler continues and keeps its slot."""
        job, slots, worker.began = worker.job, copy(self.slots), -math.inf
        self.end(worker, Ending("failed"))
        worker.job, self.slots, worker.timed_out = job, slots, True

    def cancel(self, name: str) -> str:
        job = self.found(name)
        if job and job.state == "running":
            self._write(job, cancel_requested=True)
        elif job and job.state not in {"succeeded", "cancelled"}:
            self._ends(job, "cancelled")
        return job.state if job else "not found"

    def redrive(self, name: str) -> str:
        job = self.found(name)
        if job and job.state == "dead":
            anew = {"generation": job.generation + 1, "redriven": True, "cancel_requested": False, "expires": math.inf}
            zero = dict.fromkeys(("attempt", "hops", "nudges", "nudged"), 0)
            self._enters(job, **anew, **zero, death=None, ended=None)
        return job.state if job else "not found"

    def wake(self) -> None:
        for job in self.jobs.values():
            if job.state == "scheduled" and job.due <= self.now + model_types.WINDOW:
                self._write(job, state="queued")

    def reconcile(self) -> None:
        for group in self.group_orders:
            self.advance(group)
        for job in self.jobs.values():
            self.nudge(job)

    def nudge(self, job: Job) -> None:
        late = model_types.LATE if job.state == "scheduled" else min(model_types.LATE * 2**job.nudges, DAY)
        if job.due == math.inf or max(job.due, job.nudged) > self.now - late:
            return
        if job.state == "scheduled":
            self._write(job, state="queued")
        elif (
            job.state != "running"
            and job.nudges >= model_types.MAX_NUDGES
            and job.due <= self.now - model_types.GIVEN_UP
        ):
            self._ends(job, "dead", death="undeliverable")
        else:
            taken_back = {"state": "retrying", "owner": None} if job.state == "running" else {}
            self._write(job, nudges=job.nudges + 1, nudged=self.now, **taken_back)

    def found(self, name: str) -> Job | None:
        job = self.jobs.get(name)
        return job if job and job.expires > self.now else None

    def _settle(
        self, worker: Worker, state: str, due: float = 0, then: SubmitRequest | None = None, **changes: Any
    ) -> None:
        job, worker.job = worker.runs, None
        self.slots.pop(worker, None)
        if worker.timed_out or job.owner is not worker:
            return worker.reported.extend([] if worker.timed_out else [f"fenced, {self._verdict(worker.message)}"])
        if job.cancel_requested and state != "succeeded":
            state, changes = "cancelled", {}
        worker.reported.append(state if state in ENDED else "lives on")
        if state not in ENDED:
            return self._lives(job, state, due, owner=None, generation=job.generation + 1, **changes)
        self._ends(job, state, **changes)
        self.effects[job.name] += state == "succeeded"
        if then:
            self.submit(then, job.hops + 1)
        if job.request.group and worker.began + model_types.INVOCATION - self.now >= model_types.LONGEST_RUN:
            following = self.advance(job.request.group)
            if following and following.due <= self.now:
                self.deliver(worker, Message(following.name, following.generation))
        return None

    def _enters(self, job: Job, **changes: Any) -> None:
        order = self.group_orders.setdefault(job.request.group, []) if job.request.group else []
        if job not in order[:1]:
            order.append(job)
        if order[0] is job:
            self._lives(job, "queued", max(job.begins, self.now), **changes)
        else:
            self._write(job, state="waiting", due=math.inf, **changes)

    def _lives(self, job: Job, state: str, due: float, **changes: Any) -> None:
        self._write(job, state="scheduled" if due - self.now > model_types.DELAY else state, due=due, **changes)

    def _ends(self, job: Job, state: str, death: str | None = None) -> None:
        kept_until = max(math.ceil(self.now + model_types.RETENTION), job.kept_until)
        expires = math.inf if state == "dead" and job.blocks else kept_until
        self._write(job, state=state, death=death, due=math.inf, owner=None, ended=self.now, expires=expires)

    def _write(self, job: Job, **changes: Any) -> None:
        before = copy(job)
        vars(job).update(changes)
        self.stream.append((before, copy(job)))

    def _verdict(self, message: Message) -> str:
        job = self.jobs.get(message.name)
        if job is None or job.state in ENDED or job.generation > message.generation:
            return "gone" if job is None else "duplicate" if job.state in ENDED else "stale"
        verdict = "ahead" if job.generation < message.generation else "leased" if job.owner else "early"
        until = self.now + model_types.MINUTE if verdict == "ahead" or job.due == math.inf else job.due
        return f"{verdict} until {until:g}"
