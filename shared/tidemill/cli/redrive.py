"""`tidemill redrive`: give dead jobs another life, and tidy the letters that told of them."""

from collections.abc import Callable, Sequence
from functools import partial

import click

from tidemill.application.ports import DeadLetterQueue, ReceivedDeadLetter
from tidemill.application.redrive import Selection
from tidemill.cli.confirm import confirmed, require_somebody
from tidemill.cli.dead_job_report import ended_at
from tidemill.cli.errors import ExplainedError, tell_unreadable
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation, operator
from tidemill.cli.output import progress_bar, say, show
from tidemill.cli.parallel_writes import AtOnce
from tidemill.cli.redrive_plan import Plan


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Jobs of this type; may be given again.")
@click.option("--all", "everything", is_flag=True, help="All dead jobs.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def redrive(
    installation: Installation,
    ids: tuple[str, ...],
    types: tuple[str, ...],
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Give dead jobs another life.

    Choose them by ID, by --type (given both, both must fit), or take --all. They are redriven from their documents.
    Afterwards every dead-letter queue is tidied: letters of jobs that have moved on are deleted, jobs that no worker
    ever started are dispatched again (nudged), and letters of dead or running jobs are kept.

    Safe to repeat, and to run twice at once. Interrupted, it leaves every job either dead or redriven.
    """
    _check(selected=bool(ids or types), everything=everything)
    require_somebody(yes=yes or dry_run, instead=", or --dry-run to see what would be done")
    plan = _plan(installation, Selection(ids=ids, types=types))
    plan.present(dry_run=dry_run)
    missing = sorted(set(ids) - {job.id for job in plan.jobs})
    if missing:
        say(f"Not dead, of another type, or unknown: {', '.join(missing)}")
    if dry_run:
        show("Nothing was changed.")
        return
    if plan.empty and not yes:
        say("Nothing was changed.")
        return
    if not confirmed(_question(plan), yes=yes):
        return
    _carry_out(installation, plan)
    if ids and not plan.jobs:
        raise ExplainedError("none of these ids is that of a dead job", remedy="`tidemill dlq list` shows the dead.")


def _check(*, selected: bool, everything: bool) -> None:
    if not selected and not everything:
        raise click.UsageError("say which jobs: IDs, --type TYPE, or --all")
    if selected and everything:
        raise click.UsageError("--all leaves nothing to choose: drop it, or the IDs and --type")


def _plan(installation: Installation, selection: Selection) -> Plan:
    jobs = sorted(
        installation.redriver.plan(selection, unreadable=tell_unreadable), key=lambda job: (ended_at(job), job.id)
    )
    return Plan(
        jobs=jobs, dead_letters={lane: installation.dead_letters(lane) for lane in installation.deployment.lanes}
    )


def _question(plan: Plan) -> str:
    if plan.jobs:
        return f"Redrive {count(len(plan.jobs), 'job')}?"
    return f"Tidy {count(sum(plan.dead_letters.values()), 'letter')}?"


def _carry_out(installation: Installation, plan: Plan) -> None:
    redrive_ = partial(installation.redriver.redrive, by=operator())
    redriving = AtOnce(redrive_, plan.jobs, done="Redrove")
    try:
        with progress_bar("redriving", len(plan.jobs)) as advance:
            redriving.run(advance)
        with progress_bar("letters", sum(plan.dead_letters.values())) as advance:
            swept = [
                installation.redriver.sweep(_Watched(installation.dead_letter_queue(lane), advance))
                for lane in installation.deployment.lanes
            ]
    except BaseException:
        say(
            f"{redriving.summary} Nothing is left half done. Run the command again to go on; it tidies the letters too."
        )
        raise
    show(redriving.summary)
    show(
        f"Letters: {sum(one.outdated for one in swept)} deleted, "
        f"{sum(one.nudged for one in swept)} nudged, {sum(one.kept for one in swept)} kept."
    )


class _Watched:
    """A `DeadLetterQueue` that says when a letter is read."""

    def __init__(self, box: DeadLetterQueue, advance: Callable[[], object]) -> None:
        self._box = box
        self._advance = advance

    def receive(self) -> Sequence[ReceivedDeadLetter]:
        dead_letters = self._box.receive()
        for _ in dead_letters:
            self._advance()
        return dead_letters

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self._box.delete(dead_letters)

    def put_back(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self._box.put_back(dead_letters)
