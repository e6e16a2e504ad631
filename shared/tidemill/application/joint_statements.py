"""How many jobs one call writes, of which each has a statement of its own."""

from typing import Final

#: The most statements of one call.
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
MOST_TOGETHER: Final = 25
#: One job has a call of its own: its insert costs the same, and its claim less, since that reads nothing.
FEWEST_TOGETHER: Final = 2
