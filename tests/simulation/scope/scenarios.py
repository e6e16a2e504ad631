"""The scenarios of the small scope: one or two jobs, two workers, and at times callers or operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from tests.simulation.actors.callers import TENANTS, PlannedSubmission
from tests.simulation.checks.flows import FlowChecks
from tests.simulation.jobs.event_types import EVENT
from tests.simulation.jobs.flow_types import NODE
from tests.simulation.scope.director import Director
from tests.simulation.scope.participants import Fate
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.events.events import publish
from tidemill.application.flows.flows import start_flow
from tidemill.application.submission.job_ids import keyed_job_id, node_job_id
from tidemill.domain.errors import TidemillError
from tidemill.domain.events.events import Event
from tidemill.domain.flows.flows import Flow, Node
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.system import clock, ids

_TENANT: Final = TENANTS[0]
_ENDS_WELL: Final = frozenset({State.SUCCEEDED})
#: Enough faults can use up the attempts, or prevent every redrive.
_ENDS: Final = frozenset({State.SUCCEEDED, State.DEAD})
_CANCELLED: Final = frozenset({State.SUCCEEDED, State.CANCELLED})
_DELAY: Final = timedelta(seconds=10)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ScenarioSetup:
    """Sets up the callers and operators of one scenario in a world."""

    def __init__(self, world: World, director: Director, flow_checks: FlowChecks) -> None:
        self.world = world
        self.flow_checks = flow_checks
        self.director = director
        #: Job ids by readable name.
        self.names: dict[str, str] = {}

    def submit(self, *submissions: Submission) -> None:
        """Submit one after another, before the schedule begins."""
        for submission in submissions:
            self._submitter("setup", submission, directed=False)
            self.director.run_until_held(most_steps=MOST_STEPS)

    def submit_at_once(self, *submissions: Submission) -> None:
        for number, submission in enumerate(submissions, start=1):
            self._submitter(f"caller {number}", submission, directed=True)

    def _submitter(self, name: str, submission: Submission, *, directed: bool) -> None:
        planned = PlannedSubmission(_TENANT, submission, self.director.now_ms)
        self.world.submissions.append(planned)

        def act() -> None:
            accepted = composition.parts().submit(submission, tenant=_TENANT, trace=name)
            planned.ids.append(accepted.job.id)
            self.names[submission.key or name] = accepted.job.id
            self.world.log(name, f"was told that {accepted.job.id} is accepted")

        self.tool(name, act, directed=directed)

    def publish(self, event: Event) -> None:
        """Publish it before the schedule begins. Only the calls for its own job are held."""

        def act() -> None:
            job = publish(event, composition.parts().submit, tenant=_TENANT, trace="setup").job
            self.director.only = frozenset({f"{_TENANT}#{job.id}"})

        self._at_first(act)

    def start_flow(self, nodes: Sequence[Node], *, only: Sequence[str] | None = None) -> None:
        """Start it before the schedule begins. With `only`, only the calls for these nodes are held."""
        flow = Flow(nodes=nodes, key="flow")
        key = f"{_TENANT}#{keyed_job_id(_TENANT, 'flow/flow')}"
        known = [{"name": each.name, "payload": each.submission.payload, "after": each.after} for each in nodes]
        self.flow_checks.knows(key, known)

        def act() -> None:
            job = start_flow(flow, composition.parts().submit, tenant=_TENANT, trace="setup").job
            self.flow_checks.accepted.append(key)
            if only is not None:
                self.director.only = frozenset(f"{_TENANT}#{node_job_id(job, name)}" for name in only)

        self._at_first(act)

    def _at_first(self, act: Callable[[], None]) -> None:
        self.tool("setup", act, directed=False)
        self.director.run_until_held(most_steps=MOST_STEPS)

    def cancel(self, name: str, *, by: str) -> None:
        def act() -> None:
            job = composition.parts().store.get(_TENANT, self.names[name])
            if job is not None:
                composition.parts().store.cancel(job, now=clock.now())

        self.tool(by, act)

    def redrive(self, name: str, *, by: str) -> None:
        def act() -> None:
            job = composition.parts().store.get(_TENANT, self.names[name])
            if job is not None:
                composition.parts().store.redrive(job, token=ids.new_token(), now=clock.now(), by=by)

        self.tool(by, act)

    def tool(self, name: str, act: Callable[[], None], *, directed: bool = True) -> None:
        """Run `act` in a tool of its own. It does not retry a refused call."""

        def run() -> None:
            with self.director.tool(name, directed=directed):
                try:
                    act()
                except TidemillError as error:
                    self.world.log(name, f"gave up: {error}")

        self.world.scheduler.spawn(self.world.process(name), run)


MOST_STEPS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    begin: Callable[[ScenarioSetup], None]
    #: Runs before the schedule, without choices.
    before: Callable[[ScenarioSetup], None] | None = None
    #: Allowed terminal states of its jobs.
    endings: frozenset[State] = _ENDS_WELL
    batch_size: int = 1
    #: Functions whose calls are ordered by choice. Other functions finish before any other actor continues.
    directed: frozenset[str] = frozenset({"work"})
    #: Whether actors of different jobs touch no common item. The director verifies it.
    independent: bool = False
    #: What may become of a call.
    fates: frozenset[Fate] = frozenset(Fate)
    #: Most faults in one schedule by default, so that all scenarios together take minutes.
    most_faults: int = 2


def _job(key: str, type_name: str = "sim.effect", **plan: Any) -> Submission:
    return Submission(type=type_name, payload=plan, key=key)


def _of_one_group(setup: ScenarioSetup) -> None:
    setup.submit(*(replace(_job(key), group="orders") for key in ("first", "second")))


def _limited(key: str) -> Submission:
    return Submission(type="sim.limited", payload={"key": "a"}, key=key)


def _dead_by_deadline(setup: ScenarioSetup) -> None:
    """The job reaches a worker just after its deadline and dies."""
    due = _EPOCH + timedelta(milliseconds=setup.director.now_ms) + _DELAY
    setup.submit(replace(_job("first"), delay=_DELAY, deadline=due + timedelta(milliseconds=1)))


def _redriven_by_two(setup: ScenarioSetup) -> None:
    for name in ("ada", "bob"):
        setup.redrive("first", by=name)


def _cancelled(setup: ScenarioSetup, **plan: Any) -> None:
    setup.submit(_job("first", **plan))
    setup.cancel("first", by="ada")


def _event(setup: ScenarioSetup) -> None:
    """Three consumers take it, one of which never succeeds, and a fourth one does not."""
    setup.publish(Event(type=EVENT, data={"count": 1}, key="first"))


def _fan_in(setup: ScenarioSetup, *, only: Sequence[str] | None = None) -> None:
    parents = ("left", "right")
    nodes = [Node(name, Submission(type=NODE, payload={"key": name})) for name in parents]
    setup.start_flow([*nodes, Node("join", Submission(type=NODE, payload={"key": "join"}), after=parents)], only=only)


SCENARIOS: Final = (
    Scenario("one job", lambda setup: setup.submit(_job("first")), most_faults=3),
    Scenario(
        "one that fails", lambda setup: setup.submit(_job("first", "sim.urgent", fails=1)), endings=_ENDS, most_faults=3
    ),
    Scenario("one that saves", lambda setup: setup.submit(_job("first", "sim.steps", count=1)), most_faults=3),
    Scenario("one that goes on", lambda setup: setup.submit(_job("first", "sim.continue", count=1))),
    Scenario("one that is cancelled", _cancelled, endings=_CANCELLED),
    Scenario("one that fails, cancelled", partial(_cancelled, fails=1), endings=_CANCELLED, most_faults=1),
    Scenario("one redriven by two", _redriven_by_two, before=_dead_by_deadline, endings=_ENDS),
    Scenario("one key twice", lambda setup: setup.submit_at_once(_job("first"), _job("first"))),
    Scenario("one that follows", lambda setup: setup.submit(_job("first", "sim.chain", count=1))),
    Scenario("two jobs", lambda setup: setup.submit(_job("first"), _job("second")), independent=True, most_faults=3),
    Scenario("two in one batch", lambda setup: setup.submit(_job("first"), _job("second")), batch_size=2),
    Scenario("two of one group", _of_one_group),
    # Publish advances the group as well, from the stream record of the first job.
    Scenario("two of one group, published", _of_one_group, directed=frozenset({"work", "publish"}), most_faults=0),
    # With a fault there are hundreds of thousands of schedules.
    Scenario("two within a limit", lambda setup: setup.submit(_limited("first"), _limited("second")), most_faults=0),
    Scenario("an event with its consumers", _event, endings=_ENDS, most_faults=1),
    Scenario("a fan-in of two", partial(_fan_in, only=("left", "right")), endings=_ENDS, most_faults=1),
    # The ends of both parents come over the stream, and start the node that joins them. Publish leaves what it cannot
    # do to wake, which nothing calls here.
    Scenario(
        "a fan-in of two, published",
        _fan_in,
        directed=frozenset({"publish"}),
        endings=_ENDS,
        fates=frozenset({Fate.FINE, Fate.KILLED_BEFORE, Fate.KILLED_AFTER, Fate.ANSWER_LOST}),
    ),
)
