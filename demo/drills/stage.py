"""`Stage`: the deployed stage, as drills use it. `embedded_stage` is the one on the embedded AWS."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from demo.drills.downstream import Downstream
from tidemill.domain.job import Job
from tidemill.names import LIVE_ALIAS


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the API to the submission of one job."""

    status: int
    #: None if the job was refused.
    id: str | None = None
    #: The header `Retry-After` of a refusal, in seconds.
    retry_after: int | None = None


class Stage(Protocol):
    def client(self, service: str) -> Any:
        """An SDK client that may do everything."""

    def function(self, verb: str) -> str:
        """The name of the function with this key in the output `Functions`."""

    def mapping(self, verb: str) -> str:
        """The UUID of the event source mapping of a function."""

    def schedule(self, verb: str) -> Mapping[str, Any]:
        """The only schedule of a function, as `UpdateSchedule` takes it."""

    def submit(self, jobs: Sequence[Mapping[str, Any]], *, role: str) -> Sequence[str | None]:
        """Submit over HTTP, as a session of this role. Returns the id of each job, None for one that was refused."""

    def submit_one(self, job: Mapping[str, Any], *, role: str) -> Answer:
        """Submit in a request of its own."""

    def jobs(self, ids: Collection[str]) -> Mapping[str, Job]:
        """The documents of those jobs that exist, by id."""

    def effects(self, ledgers: Collection[str]) -> Mapping[str, Sequence[str]]:
        """What the runs of jobs have written, by ledger."""

    def downstream(self) -> Downstream:
        """A service that the jobs of the demo can call. Its caller closes it."""

    def jobs_table(self) -> str:
        """Its name."""

    def canaries(self) -> Sequence[Job]:
        """The canary jobs of all lanes."""

    def deploy(self, settings: Sequence[str]) -> None:
        """Deploy the app with these settings, each as `name=value`."""

    def deploy_variable(self, verb: str, name: str, value: str) -> None:
        """Deploy the function with another value of one environment variable."""

    def kill_worker(self, verb: str, ids: Collection[str]) -> None:
        """Kill a worker of this function while one of these jobs runs, as the host does when memory runs out."""

    def status(self) -> Mapping[str, Any]:
        """The object that `tidemill status --json` prints."""

    def explain(self, id_: str) -> str:
        """What `tidemill explain` says of a job."""

    def execute(self, words: Sequence[str]) -> None:
        """Run a command of an operator: `tidemill …` or `aws …`. Raises CommandError."""


def ask_for_pass(stage: Stage) -> None:
    """Ask reconcile for a pass over the table, as the next day does."""
    function = stage.function("reconcile")
    stage.client("lambda").invoke(FunctionName=function, InvocationType="Event", Qualifier=LIVE_ALIAS)
