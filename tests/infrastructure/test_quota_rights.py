"""The function that counts the submissions of tenants with a quota may update these counts, and no job."""

from tests.infrastructure.conftest import Synthesised
from tidemill.names import QUOTA_KEY


def test_submit_updates_nothing_but_counts(dev: Synthesised) -> None:
    updates = [
        statement
        for id_, policy in dev.of_type("AWS::IAM::Policy")
        if id_.lower().startswith("submit")
        for statement in policy["PolicyDocument"]["Statement"]
        if "dynamodb:UpdateItem" in statement["Action"]
    ]

    assert [statement["Action"] for statement in updates] == ["dynamodb:UpdateItem"]
    assert updates[0]["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [f"{QUOTA_KEY}*"]}
