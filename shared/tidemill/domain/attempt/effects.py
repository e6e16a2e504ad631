"""The writes of a handler that commit with the success of its job."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

#: DynamoDB keeps so many digits of a number:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
MOST_DIGITS: Final = 38
#: One entry of a DynamoDB transaction, as the low-level client takes it: `{"Put": {…}}`, `{"Update": {…}}`, …
TransactWrite = Mapping[str, Any]


class Add(Struct, frozen=True):
    """Adds whole numbers to attributes of one item of DynamoDB. A missing item or attribute counts as 0.

    A transaction writes each item once. So the jobs that succeed together add up what they add to the same item, where
    two `Update` entries would need two transactions. `key` is as the low-level client takes it: `{"pk": {"S": "a"}}`.

    Raises `ValueError` without amounts, or for one that is too large, and `TypeError` for one that is not a whole
    number.
    """

    table: str
    key: Mapping[str, Any]
    #: By the name of the attribute.
    amounts: Mapping[str, int]

    def __post_init__(self) -> None:
        if not self.amounts:
            raise ValueError("Add has no amounts; name an attribute and what to add to it")
        amounts: Mapping[str, object] = self.amounts
        for name, amount in amounts.items():
            if not isinstance(amount, int) or isinstance(amount, bool):
                raise TypeError(f"Add takes whole numbers; got {amount!r} for {name!r}")
            if abs(amount) >= 10**MOST_DIGITS:
                raise ValueError(f"Add takes numbers of at most {MOST_DIGITS} digits; the one for {name!r} has more")


Effect = TransactWrite | Add
