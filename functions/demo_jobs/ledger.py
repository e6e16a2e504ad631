"""The table in which demo jobs record their effects: a list of words for each name."""

import os

from tidemill import TransactWrite

#: Set by the stack of the demo jobs.
TABLE_VARIABLE = "DEMO_LEDGER_TABLE"


def appended(name: str, word: str) -> TransactWrite:
    """The write that appends `word` to the list of `name`. It is not idempotent, so a second execution is visible."""
    return {
        "Update": {
            "TableName": os.environ[TABLE_VARIABLE],
            "Key": {"name": {"S": name}},
            "UpdateExpression": "SET words = list_append(if_not_exists(words, :none), :word)",
            "ExpressionAttributeValues": {":none": {"L": []}, ":word": {"L": [{"S": word}]}},
        }
    }
