"""The files bucket is private, and its files expire."""

import json

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, verb_of
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import EXPORTS_PREFIX, PAYLOADS_PREFIX, Env


def _bucket(app: Synthesised) -> Resource:
    ((_, bucket),) = app.of_type("AWS::S3::Bucket")
    return bucket


def test_files_are_encrypted_private_and_served_only_over_tls(dev: Synthesised) -> None:
    bucket = _bucket(dev)
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    ((_, policy),) = dev.of_type("AWS::S3::BucketPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("stage", ["local", "dev", "prod"])
def test_files_expire_but_not_before_the_last_job_that_needs_them(synthesise: Synthesise, stage: str) -> None:
    app = synthesise(stage=stage)
    rules = _bucket(app)["LifecycleConfiguration"]["Rules"]
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    days = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    assert days == {
        # The longest schedule, the longest retention, and as long again for a blocked group.
        PAYLOADS_PREFIX: 3 * LONGEST_SPAN.days,
        EXPORTS_PREFIX: app.config.export_retention_days,
    }
    (unfinished,) = (rule for rule in rules if "AbortIncompleteMultipartUpload" in rule)
    assert "Prefix" not in unfinished


def test_the_bucket_needs_no_custom_resource_of_cdk(dev: Synthesised) -> None:
    assert not any(resource["Type"].startswith("Custom::") for _, resource in dev.everything())
    assert "autoDeleteObjects" not in json.dumps(dev.pipeline)


def test_only_functions_that_may_write_files_learn_to_prefer_them(synthesise: Synthesise, dev: Synthesised) -> None:
    """A function of the app with `allow_submitting` has no right on the bucket, and stores items up to the default."""
    frugal = synthesise(stage="dev", payload_item_bytes="4096")

    assert _told(frugal, Env.PAYLOAD_ITEM_BYTES) == {"4096": {"publish", "submit", "work"}}
    assert _told(dev, Env.PAYLOAD_ITEM_BYTES) == {}


def test_the_same_functions_learn_to_compress(synthesise: Synthesise, dev: Synthesised) -> None:
    compressing = synthesise(stage="dev", compress_payloads="on")

    assert _told(compressing, Env.COMPRESS_PAYLOADS) == {"true": {"publish", "submit", "work"}}
    assert _told(dev, Env.COMPRESS_PAYLOADS) == {}


def _told(app: Synthesised, variable: Env) -> dict[str, set[str]]:
    """The functions with this variable, by its value."""
    found: dict[str, set[str]] = {}
    for _, function in app.of_type("AWS::Lambda::Function"):
        if value := function["Environment"]["Variables"].get(variable):
            found.setdefault(value, set()).add(verb_of(function))
    return found
