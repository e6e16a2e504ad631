"""Who is outside: callers and owners, and the other version of the code."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

OUTSIDE: Final = (
    # Two versions at once.
    Mutant(
        "an older version writes over what it cannot read",
        "tidemill.dynamodb.update_requests",
        '            f"#{SCHEMA_ATTRIBUTE} <= :new_{SCHEMA_ATTRIBUTE}",\n',
        "",
    ),
    Mutant(
        "a request to end makes a run's document newer",
        modules.OPERATORS,
        'sets={"cancel_requested_at": milliseconds(now), "cancel"',
        'sets={"cancel_requested_at": milliseconds(now), "schema": number(SCHEMA_VERSION), "cancel"',
    ),
    Mutant(
        "a newer message is rubbish",
        modules.RUN_OF_MESSAGE,
        "Report(ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until)",
        "Report(ending=Ending.MALFORMED, cause=error)",
    ),
    Mutant(
        "a newer document is acknowledged",
        modules.RUN_OF_MESSAGE,
        "            attempt.unavailable(error)\n",
        "            attempt.unavailable(error)\n"
        "            import dataclasses\n"
        "            if attempt.report and isinstance(error, NewerSchemaError):\n"
        "                attempt._report = dataclasses.replace(attempt.report, put_back_until=None)\n",
    ),
    Mutant(
        "tags are not part of the body",
        modules.SUBMISSION_BODY,
        '        "tags": sorted(submission.tags) or None,\n',
        "",
    ),
    Mutant(
        "a follow-up inherits tags",
        modules.SUBMIT,
        "return replace(job, parent=parent.id, hops=hops)",
        "return replace(job, parent=parent.id, hops=hops, tags=parent.tags)",
    ),
    Mutant("an unknown type dies at once", modules.GATES, ">= MOST_HOLDS_OF_A_VERSION:", ">= 0:"),
    Mutant(
        "an unknown type uses up attempts",
        modules.GATES,
        "            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)\n",
        "            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)\n        raise refusal\n",
    ),
    Mutant(
        "a type that is not known has a policy of its own",
        modules.GATES,
        "RetryPolicy(max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS)",
        "RetryPolicy(max_attempts=1)",
    ),
    Mutant(
        "publish passes over what it cannot read",
        modules.STREAM,
        'batch.unreadable.append(UnreadableChange(sequence, *split_key(images["Keys"]), error, payload_at))',
        "continue",
    ),
    Mutant(
        "reconcile does not report unreadable items",
        modules.RECONCILE,
        "                unreadable.append(result)\n",
        "                pass\n",
    ),
    # Callers and owners.
    Mutant("a session is a tenant", modules.CALLER, 'principal = user.partition(":")[0]', "principal = user"),
    Mutant("an account is a tenant", modules.CALLER, 'return f"{account}:{principal}"', "return str(account)"),
    Mutant(
        "the first caller stands for every caller",
        modules.CALLER,
        'return f"{account}:{principal}"',
        'return globals().setdefault("_caller", f"{account}:{principal}")',
    ),
    Mutant(
        "a cursor is valid for every tenant", modules.CURSORS, "json.dumps([*bound_to, ", "json.dumps([*bound_to[1:], "
    ),
    Mutant(
        "a cursor is good for any filters", modules.CURSORS, "json.dumps([*bound_to, ", "json.dumps([*bound_to[:1], "
    ),
    Mutant(
        "a listing ends with its first page",
        modules.LISTING,
        "return page(end=entry)",
        "return page(end=None)",
    ),
    Mutant(
        "a listing by tag shows other jobs, too",
        modules.LISTING,
        " and self.tag in {None, *job.tags}",
        "",
    ),
    Mutant(
        "a listing by tag finds one tag of a job",
        modules.LISTING,
        "self.tag in {None, *job.tags}",
        "self.tag in {None, *job.tags[:1]}",
    ),
    Mutant(
        "reads query the shards of the present version only",
        modules.INDEXES,
        "range(LARGEST_INDEX_SHARDS)[",
        "range(2)[",
    ),
    Mutant(
        "wake does one part of the shards only",
        modules.INDEXES,
        "[part.number :: part.count]",
        "[:: part.count]",
    ),
    Mutant("a page begins with the end of the one before", modules.LISTING, "if entry < below)", "if entry <= below)"),
    Mutant(
        "a batch accepts what failed",
        modules.BATCHES,
        "it is the answer\n        return error\n",
        "it is the answer\n        return Accepted(job=insert.args[1], replayed=False) if insert.args[1:] else error\n",
    ),
    Mutant(
        "answers of a batch come as they please",
        modules.BATCHES,
        "return [answers[index] for index in range(len(asked))]",
        "return list(answers.values())",
    ),
    Mutant(
        "a job of a broken job file is left to another version",
        modules.GATES,
        "            return self.parked_for_type(job, self._unknown)\n",
        "            return self.left_to_another_version(job, self._unknown)\n",
    ),
    Mutant(
        "a step that another version added ends the job",
        modules.STEPS,
        "return None if own else StepsChangedError(",
        "return None if own or True else StepsChangedError(",
    ),
    Mutant(
        "wake never hears of a broken job file",
        modules.GATES,
        "        self._context.limits.list_line(line, rate, job=(job.tenant, job.id), now=now)\n",
        "",
    ),
    Mutant(
        "wake releases what it cannot load",
        modules.RELEASE,
        "return line.cause is Cause.TYPE and self._lacks_type(line.key)",
        "return line.cause is Cause.TYPE and False",
    ),
    Mutant(
        "a type stays missing after the fix",
        modules.RELEASE,
        "return line.cause is Cause.TYPE and self._lacks_type(line.key)",
        "return line.cause is Cause.TYPE",
    ),
)
