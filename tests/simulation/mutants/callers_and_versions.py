"""Who is outside: callers and owners, and the other version of the code."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

OUTSIDE: Final = (
    # Two versions at once.
    Mutant(
        "an older version writes over what it cannot read",
        "tidemill.dynamodb.update_requests",
        "update_job",
        "f'#{SCHEMA_ATTRIBUTE} <= :new_{SCHEMA_ATTRIBUTE}'",
        "",
    ),
    Mutant(
        "a request to end makes a run's document newer",
        modules.OPERATORS,
        "request_cancel",
        "'cancel': CANCEL.encode(asked)",
        "'schema': number(SCHEMA_VERSION), 'cancel': CANCEL.encode(asked)",
    ),
    Mutant(
        "a newer message is rubbish",
        modules.RUN_OF_MESSAGE,
        "_report_on_unread",
        "ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until",
        "ending=Ending.MALFORMED, cause=error",
    ),
    Mutant(
        "a newer document is acknowledged",
        modules.RUN_OF_MESSAGE,
        "MessageRun._contain_errors",
        "attempt.unavailable(error)",
        "attempt.unavailable(error)\n"
        "from tidemill.domain.records import replace\n"
        "if attempt.report and isinstance(error, NewerSchemaError):\n"
        "    attempt._report = replace(attempt.report, put_back_until=None)",
    ),
    Mutant(
        "tags are not part of the body",
        modules.CHECKED_SUBMISSION,
        "body_of",
        "'tags': sorted(submission.tags) or None",
        "",
    ),
    Mutant(
        "a follow-up inherits tags",
        modules.SUBMIT,
        "Submit.prepare_follow_up",
        "parent=parent.id",
        "parent=parent.id, tags=parent.tags",
    ),
    Mutant(
        "an unknown type dies at once", modules.ATTEMPT_HOLDS, "left_to_another_version", "MOST_HOLDS_OF_A_VERSION", "0"
    ),
    Mutant(
        "an unknown type uses up attempts",
        modules.ATTEMPT_HOLDS,
        "left_to_another_version",
        "held = run.context.held_below(min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS), HoldCause.VERSION)",
        "raise refusal\n"
        "held = run.context.held_below(min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS), "
        "HoldCause.VERSION)",
    ),
    Mutant(
        "a type that is not known has a policy of its own",
        modules.CLAIMED_RUN,
        "",
        "max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS",
        "max_attempts=1",
    ),
    Mutant(
        "publish passes over what it cannot read",
        modules.STREAM,
        "read",
        "batch.unreadable.append(UnreadableChange(sequence, *split_key(images['Keys']), error, payload_at))",
        "continue",
    ),
    Mutant(
        "reconcile does not report unreadable items",
        modules.RECONCILE,
        "Reconciler.run.work",
        "unreadable.append(result)",
        "pass",
    ),
    # Callers and owners.
    Mutant("a session is a tenant", modules.CALLER, "_signer", "user.partition(':')[0]", "user"),
    Mutant("an account is a tenant", modules.CALLER, "_signer", "f'{account}:{principal}'", "str(account)"),
    Mutant(
        "the first caller stands for every caller",
        modules.CALLER,
        "_signer",
        "f'{account}:{principal}'",
        "globals().setdefault('_caller', f'{account}:{principal}')",
    ),
    Mutant("a cursor is valid for every tenant", modules.CURSORS, "_mac", "*bound_to", "*bound_to[1:]"),
    Mutant("a cursor is good for any filters", modules.CURSORS, "_mac", "*bound_to", "*bound_to[:1]"),
    Mutant("a listing ends with its first page", modules.LISTING, "DynamoListing.page", "end=entry", "end=None"),
    Mutant(
        "a listing by tag shows other jobs, too",
        modules.LISTING,
        "Wanted.__contains__",
        "self.tag in {None, *job.tags}",
        "",
    ),
    Mutant(
        "a listing by tag finds one tag of a job", modules.LISTING, "Wanted.__contains__", "*job.tags", "*job.tags[:1]"
    ),
    Mutant(
        "reads query the shards of the present version only", modules.INDEXES, "merged", "LARGEST_INDEX_SHARDS", "2"
    ),
    Mutant(
        "wake does one part of the shards only",
        modules.INDEXES,
        "merged",
        "range(LARGEST_INDEX_SHARDS)[part.number::part.count]",
        "range(LARGEST_INDEX_SHARDS)[::part.count]",
    ),
    Mutant(
        "a page begins with the end of the one before",
        modules.LISTING,
        "DynamoListing.page",
        "entry < below",
        "entry <= below",
    ),
    Mutant(
        "a batch accepts what failed",
        modules.BATCHES,
        "_answer",
        "return error",
        "return Accepted(job=insert.args[1], replayed=False) if insert.args[1:] else error",
    ),
    Mutant(
        "answers of a batch come as they please",
        modules.BATCHES,
        "submit_all",
        "[answers[index] for index in range(len(asked))]",
        "list(answers.values())",
    ),
    Mutant(
        "a job of a broken job file is left to another version",
        modules.TYPE_GATES,
        "TypeGate.enter",
        "self.instead_of(unknown) or left_to_another_version(self.run, unknown)",
        "left_to_another_version(self.run, unknown)",
    ),
    Mutant(
        "a step that another version added ends the job",
        modules.STEPS,
        "Steps.of_another_version",
        "None if own else StepsChangedError([each.name for each in recorded], self._asked)",
        "None if own or True else StepsChangedError([each.name for each in recorded], self._asked)",
    ),
    Mutant(
        "wake never hears of a broken job file",
        modules.ATTEMPT_HOLDS,
        "parked_in_listed_line",
        "run.context.limits.list_line(line, rate, job=(run.job.tenant, run.job.id), now=now)",
        "",
    ),
    Mutant(
        "wake releases what it cannot load", modules.RELEASE, "Releaser._stands", "self._lacks_type(line.key)", "False"
    ),
    Mutant(
        "a type stays missing after the fix",
        modules.RELEASE,
        "Releaser._stands",
        "line.cause is Cause.TYPE and self._lacks_type(line.key)",
        "line.cause is Cause.TYPE",
    ),
)
