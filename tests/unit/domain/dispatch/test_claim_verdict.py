"""The verdict on a refused claim, and the rule for dead-letter messages."""

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to, with_changes
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict, judge
from tidemill.domain.dispatch.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

JOB = a_job(generation=5)
RUNNING = with_changes(JOB, state=State.RUNNING, owner="another")
DEAD = with_changes(JOB, state=State.DEAD, expires_at=NOW + SECOND)
SUCCEEDED = replace(DEAD, state=State.SUCCEEDED)


@pytest.mark.parametrize(
    ("current", "verdict"),
    [
        (None, ClaimVerdict.GONE),
        (SUCCEEDED, ClaimVerdict.DUPLICATE),
        (DEAD, ClaimVerdict.DUPLICATE),
        (replace(SUCCEEDED, generation=4), ClaimVerdict.DUPLICATE),
        (replace(JOB, generation=6), ClaimVerdict.STALE),
        (replace(RUNNING, generation=6), ClaimVerdict.STALE),
        (replace(JOB, generation=4), ClaimVerdict.AHEAD),
        (RUNNING, ClaimVerdict.LEASED),
        (JOB, ClaimVerdict.EARLY),
        (replace(JOB, state=State.RETRYING), ClaimVerdict.EARLY),
    ],
)
def test_a_verdict_comes_from_the_document_that_refused(current: Job | None, verdict: ClaimVerdict) -> None:
    assert judge(reference_to(JOB), current) is verdict


def test_a_message_is_acknowledged_only_when_its_document_no_longer_needs_it() -> None:
    acknowledged = {verdict for verdict in ClaimVerdict if verdict.acknowledged}

    assert acknowledged == {ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}


@pytest.mark.parametrize(
    ("current", "action"),
    [
        (DEAD, DeadLetterAction.DEAD),
        (JOB, DeadLetterAction.STRANDED),
        (RUNNING, DeadLetterAction.STRANDED),
        (replace(JOB, state=State.RETRYING), DeadLetterAction.STRANDED),
        (replace(JOB, state=State.SCHEDULED), DeadLetterAction.STRANDED),
        # They get a message once their turn has come, or what they wait for.
        (replace(JOB, state=State.WAITING), DeadLetterAction.OUTDATED),
        (replace(JOB, state=State.PARKED), DeadLetterAction.OUTDATED),
        (SUCCEEDED, DeadLetterAction.OUTDATED),
        (with_changes(DEAD, expires_at=NOW), DeadLetterAction.OUTDATED),
        (replace(DEAD, generation=6), DeadLetterAction.OUTDATED),
        (replace(JOB, generation=6), DeadLetterAction.OUTDATED),
        (replace(JOB, generation=4), DeadLetterAction.OUTDATED),
        (None, DeadLetterAction.OUTDATED),
    ],
)
def test_a_dead_letter_message_is_judged_from_the_document_of_its_job(
    current: Job | None, action: DeadLetterAction
) -> None:
    assert dead_letter_action(reference_to(JOB), current, now=NOW) is action


def test_an_unreadable_dead_letter_message_is_outdated() -> None:
    for current in (None, DEAD):
        assert dead_letter_action(None, current, now=NOW) is DeadLetterAction.OUTDATED
