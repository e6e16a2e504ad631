"""Where demo jobs leave their effects: a table with a list of words for each name."""

import os

from tidemill import TransactWrite

#: Set by the stack of the demo jobs.
TABLE_VARIABLE = "DEMO_LEDGER_TABLE"


def appended(name: str, word: str) -> TransactWrite:
    """The write that appends `word`. A second execution would append it again."""
    return {
        "Update": {
            "TableName": os.environ[TABLE_VARIABLE],
            "Key": {"name": {"S": name}},
            "UpdateExpression": "SET words = list_append(if_not_exists(words, :none), :word)",
            "ExpressionAttributeValues": {":none": {"L": []}, ":word": {"L": [{"S": word}]}},
        }
    }
