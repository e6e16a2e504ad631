"""Faults that let a part stand still: each run begins with the same work, and never comes to the rest."""

from dataclasses import dataclass
from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant


@dataclass(frozen=True, slots=True)
class ProgressMutant:
    """Something stands still in the play `breaks`."""

    breaks: str
    mutant: Mutant


MUTANTS: Final = (
    # The pages whose jobs have ended are a part of their own, so a look with time for one part reads no job. A page of
    # today is smaller than a part: the play makes the part smaller.
    ProgressMutant(
        "pages of a batch",
        Mutant(
            "a look at a batch reads pages without live jobs only",
            modules.BATCH_MEMBERS,
            "_parts",
            "before, before + len(page.unfinished) > _READ_TOGETHER",
            "parts[-1], before + len(page.unfinished) > _READ_TOGETHER",
        ),
    ),
    # The document of an inner batch has no cancel request: it is cancelled by a signal.
    ProgressMutant(
        "inner batches that are cancelled",
        Mutant(
            "each run cancels the same inner batches",
            modules.BATCH_JOB,
            "_cancelled",
            "job.run_ends or is_cancelling(job)",
            "job.run_ends",
        ),
    ),
    # A look begins with the same groups as the one before.
    ProgressMutant(
        "nodes behind many busy groups",
        Mutant(
            "each look tries the groups in the same order",
            modules.GROUP_TURNS,
            "in_turn.turn",
            "crc32(f'{look} {group}'.encode())",
            "0",
        ),
    ),
    # Each try takes a second.
    ProgressMutant(
        "a node that is added beside many busy groups",
        Mutant(
            "a look tries any number of busy groups",
            modules.BUSY_GROUPS,
            "Busy.leaves",
            "group in self.groups or len(self.groups) >= self.most",
            "group in self.groups",
        ),
    ),
    # It looks again at once.
    ProgressMutant(
        "hops of a flow with a busy node",
        Mutant(
            "a flow with busy nodes looks again without a pause",
            modules.FLOW_JOB,
            "run_flow",
            "run.attempt > 1",
            "looked.busy, run.attempt > 1",
        ),
    ),
    # The mutant does to jobs what the one above does to the groups of nodes.
    ProgressMutant(
        "dead members behind many busy groups",
        Mutant(
            "each look redrives the members of a batch in the same order",
            modules.BATCH_MEMBERS,
            "BatchMembers.redrive",
            "in_turn(in_order, lambda job: job.group.key, look=batch.generation)",
            "in_order",
        ),
    ),
    # Groups in order and payloads with a job stay as they are, so the page is as long as before.
    ProgressMutant(
        "a page of a pass",
        Mutant(
            "a page that takes longer than a run is begun anew",
            modules.TABLE_PASS,
            "TablePasses._past",
            "segment.past(self.scan.cursor_after(page.found[worked - 1]), worked) if worked else None",
            "None",
        ),
    ),
    # Works that fail come again, before the last of their partition has been tried.
    ProgressMutant(
        "owed work of another partition",
        Mutant(
            "owed work is done one partition after the other",
            modules.OWED_ITEMS,
            "DynamoOwedWork.pending",
            "heapq.merge(*map(entries, shards), key=lambda entry: int(entry[ATTENTION_SORT_KEY]['N']))",
            "chain.from_iterable(map(entries, shards))",
        ),
    ),
    # The jobs behind it in the order of their times wait for as long as it is held.
    ProgressMutant(
        "scheduled jobs behind one that is held",
        Mutant(
            "a job that a transaction holds ends the call of wake",
            modules.WAKE,
            "Waker._wake",
            "(StoreUnavailableError, TransactionConflictError)",
            "StoreUnavailableError",
        ),
    ),
    # All draws are equal here, so the lines have one order.
    ProgressMutant(
        "a line behind one with many jobs",
        Mutant(
            "wake releases from a line until it has no more",
            modules.RELEASE,
            "Releaser._look_at",
            "return Released(jobs=tuple(released), breaker_open=self._open_for(line))",
            "while in_time() and (more := release(line)):\n"
            "    released = [*released, *more]\n"
            "return Released(jobs=tuple(released), breaker_open=self._open_for(line))",
        ),
    ),
    # The run is killed in the wait, and the next one reads the page again.
    ProgressMutant(
        "a migration that reads slowly",
        Mutant(
            "a search waits for longer than its time",
            modules.JOB_SEARCH,
            "JobSearch.steps",
            "time_left()",
            "timedelta.max",
        ),
    ),
    ProgressMutant(
        "pages of a flow",
        Mutant(
            "a page reads the whole flow",
            "tidemill.application.flows.flow_view",
            "page_view",
            "documents.read(numbers)",
            "documents.read(range(size))",
        ),
    ),
    ProgressMutant(
        "pages of a flow",
        Mutant(
            "a page reads all parents of its nodes",
            "tidemill.application.flows.flow_view",
            "page_view",
            "(each for each in others if not documents.has_read(each)), MOST_ON_PAGE",
            "(each for each in others if not documents.has_read(each)), None",
        ),
    ),
    ProgressMutant(
        "looks of a flow that waits",
        Mutant(
            "a flow looks as often with any number of nodes",
            "tidemill.domain.spans",
            "pause_after",
            "max(longest, costs)",
            "longest",
        ),
    ),
    ProgressMutant(
        "parsed payloads of flows",
        Mutant(
            "a process keeps the texts of any number of flows",
            "tidemill.application.flows.bounded_cache",
            "BoundedCache.put",
            "self._left < 0",
            "self._left < -1000000000",
        ),
    ),
    # Its jobs are a tenth of all, or less. They fail while those of others succeed.
    ProgressMutant(
        "a breaker whose calls fail in one worker",
        Mutant(
            "one failing worker opens a breaker for all",
            modules.BREAKER,
            "trips",
            "_others(serving.workers, than=failing.workers) or _others(serving.tenants, than=failing.tenants)",
            "_others(serving.tenants, than=failing.tenants)",
        ),
    ),
    ProgressMutant(
        "a breaker whose calls fail for one tenant",
        Mutant(
            "one failing tenant opens a breaker for all",
            modules.BREAKER,
            "trips",
            "_others(serving.workers, than=failing.workers) or _others(serving.tenants, than=failing.tenants)",
            "_others(serving.workers, than=failing.workers)",
        ),
    ),
    # No other worker has had the time to say that it is served.
    ProgressMutant(
        "a breaker whose calls fail in one worker",
        Mutant(
            "the failures of one worker alone open a breaker at once",
            modules.BREAKER,
            "heard_at",
            "breaker.window_from + min(HEARD_WITHIN, policy.window) if lone else breaker.window_from",
            "breaker.window_from",
        ),
    ),
    ProgressMutant(
        "a breaker whose calls fail in one worker",
        Mutant(
            "no worker says that it is served",
            modules.BREAKER,
            "contradiction",
            "not breaker.closed or not breaker.failing or window_is_over(breaker, policy, now=now)",
            "True",
        ),
    ),
    # A run counts as late when the clock is set forward, and goes on for an hour when it is set back.
    ProgressMutant(
        "runs while the clock is set",
        Mutant(
            "the deadlines of runs follow the wall clock",
            "tidemill.system.clock",
            "steady",
            "EPOCH + timedelta(seconds=time.monotonic())",
            "now()",
        ),
    ),
    # Each attempt learns of the end of its time from its own clock only.
    ProgressMutant(
        "runs while the clock is set",
        Mutant(
            "a batch reads the wall clock for the deadlines of its runs",
            "tidemill.worker.message_batch",
            "Batch._run",
            "self._settings.context.steady",
            "self._settings.context.clock",
        ),
    ),
)
