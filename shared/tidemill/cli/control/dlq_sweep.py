"""`tidemill dlq sweep`: process the messages in the dead-letter queues now, as reconcile does every five minutes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import click

from tidemill.application.dispatch.dead_letter_sweep import Swept, sweep
from tidemill.application.ports import DeadLetterQueue, ReceivedDeadLetter, Refusal
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, sweep_counts, sweep_text
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, yes_option
from tidemill.cli.output import progress_bar, say, show, show_json
from tidemill.system import clock


@click.command("sweep")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def dlq_sweep(installation: Installation, *, yes: bool, as_json: bool) -> None:
    """Process every message in the dead-letter queues.

    Deletes the messages of jobs that have moved on, and those that cannot be read. Dispatches jobs again (nudges them)
    that no worker ever started. Keeps the messages of dead or running jobs. Reconcile does the same every five minutes.

    Redrives no job. Safe to repeat and to interrupt. Messages that were read stay hidden for up to an hour if the
    command is killed.
    """
    require_confirmation(yes=yes)
    messages = {lane: installation.dlq_messages(lane) for lane in installation.deployment.lanes}
    for lane, number in messages.items():
        say(f"{lane}: {count(number, 'DLQ message')} to process.")
    total = sum(messages.values())
    if total and not confirmed(f"Process {count(total, 'DLQ message')}?", yes=yes):
        return
    swept: dict[str, Swept] = {}
    with audited(installation, "dlq sweep", options={}, counts=lambda: sweep_counts(swept.values())):
        with progress_bar("DLQ messages", total) as advance:
            failed = _sweep_lanes(installation, messages, advance, swept)
        if as_json:
            show_json({"dlq_messages": sweep_counts(swept.values())})
        else:
            show(sweep_text(swept.values()))
        if failed:
            first = next(iter(failed.values()))
            raise CommandError(f"not all DLQ messages of {', '.join(failed)} were processed") from first
        if number := sum(each.failed for each in swept.values()):
            raise CommandError(f"{count(number, 'message')} could not be processed", remedy="Run the command again.")


def _sweep_lanes(
    installation: Installation, lanes: Iterable[str], advance: Callable[[], object], swept: dict[str, Swept]
) -> Mapping[str, Exception]:
    """Add to `swept` what is done, also if it is interrupted. Returns the lanes that failed: the others go on."""
    failed: dict[str, Exception] = {}
    for lane in lanes:
        queue = _QueueWithProgress(installation.dead_letter_queue(lane), advance)
        try:
            sweep(queue, store=installation.store, clock=clock.now, progress=partial(swept.__setitem__, lane))
        except Exception as error:  # noqa: BLE001 - one queue may be missing or denied, and the others are not
            failed[lane] = error
    return failed


class _QueueWithProgress:
    """A `DeadLetterQueue` that calls `advance` for each message received."""

    def __init__(self, queue: DeadLetterQueue, advance: Callable[[], object]) -> None:
        self._queue = queue
        self._advance = advance

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        dead_letters = self._queue.receive(hidden_for=hidden_for)
        for _ in dead_letters:
            self._advance()
        return dead_letters

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        return self._queue.delete(dead_letters)

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        self._queue.hide(dead_letters, duration=duration)
