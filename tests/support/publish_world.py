"""Publish, with doubles for what it uses."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.support.in_memory_owed_work import InMemoryOwedWork
from tests.support.single_job import Clock, Inline
from tidemill.application.dispatch.publish import Published, UnreadableChange
from tidemill.application.features.publisher_features import publisher
from tidemill.application.flows.flow_advance import FlowAdvance
from tidemill.application.ports import Refusal, Unreadable, ignore_unreadable
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Wait
from tidemill.names import Lane


@dataclass
class Lanes:
    """Accepts all messages except these."""

    refuses: Sequence[Refusal] = ()
    calls: list[Sequence[Dispatch]] = field(default_factory=list)

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        self.calls.append(dispatches)
        return self.refuses


@dataclass
class Groups:
    """The one part of a store that publish uses."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    advance_to: Callable[[str], Job | None] = lambda _group: None

    parks: list[tuple[Job, Wait]] = field(default_factory=list)
    #: What a read of many jobs finds, or raises.
    found: Sequence[Job] | Exception = ()
    reads: list[Sequence[tuple[str, str]]] = field(default_factory=list)
    park_error: Exception | None = None

    def park(self, job: Job, wait: Wait, *, now: datetime) -> Job:
        self.parks.append((job, wait))
        if self.park_error:
            raise self.park_error
        return replace(job, state=State.PARKED, due=now)

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        self.reads.append(keys)
        if isinstance(self.found, Exception):
            raise self.found
        return list(self.found)

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        self.calls.append((tenant, group))
        return self.advance_to(group)


class Payloads(Inline):
    def __init__(self) -> None:
        self.deleted: list[tuple[str, str, str | None]] = []

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        self.deleted.append((tenant, job_id, location))


@dataclass
class World:
    """The collaborators of publish."""

    lanes: Lanes = field(default_factory=Lanes)
    groups: Groups = field(default_factory=Groups)
    payloads: Payloads = field(default_factory=Payloads)
    clock: Clock = field(default_factory=Clock)
    owed: InMemoryOwedWork = field(default_factory=InMemoryOwedWork)
    configuration: RuntimeConfiguration = NOTHING_SET
    first_message_lanes: Collection[Lane] = ()
    #: How often the configuration was asked for.
    looks: int = 0
    flows: Callable[[], FlowAdvance] | None = None

    def configured(self) -> RuntimeConfiguration:
        self.looks += 1
        return self.configuration

    def publish(self, *changes: Change, unreadable: Sequence[UnreadableChange] = ()) -> Published:
        built = publisher(
            store=self.groups,
            payloads=self.payloads,
            lanes=self.lanes,
            owed=self.owed,
            clock=self.clock,
            configuration=self.configured,
            first_message_lanes=self.first_message_lanes,
            flows=self.flows,
        )
        return built.publish(changes, unreadable)


__all__ = ["Groups", "Lanes", "Payloads", "World"]
