"""Where demo jobs leave their effects: a list of words, one item for each name, beside the clicks."""

from tidemill.composition import setting
from tidemill.domain.outcomes import TransactWrite
from tidemill.names import CLICK_KEY, CLICK_SORT_KEY, Env


def appended(name: str, word: str) -> TransactWrite:
    """The write that puts `word` at the end. Done twice it would stand there twice."""
    return {
        "Update": {
            "TableName": setting(Env.CLICKS_TABLE),
            # No link begins as this does.
            "Key": {CLICK_KEY: {"S": f"!ledger#{name}"}, CLICK_SORT_KEY: {"S": "words"}},
            "UpdateExpression": "SET words = list_append(if_not_exists(words, :none), :word)",
            "ExpressionAttributeValues": {":none": {"L": []}, ":word": {"L": [{"S": word}]}},
        }
    }
