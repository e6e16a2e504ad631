"""The keys of items in the jobs table that are not jobs: a prefix, with which no tenant begins, and parts."""

import json

from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item
from tidemill.names import JOB_KEY


def prefixed_key(prefix: str, *parts: str | int) -> Item:
    """Return a key of JSON, so that no part can contain the separator. Unescaped, since a key has at most 2 KiB."""
    return {JOB_KEY: text(prefix + json.dumps(parts, separators=(",", ":"), ensure_ascii=False))}
