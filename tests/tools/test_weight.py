"""What counts as a line of code."""

from tools.weight import code_lines

_MODULE = '''
"""A docstring
of two lines."""

import os
from typing import (
    Any,
)

#: A comment.
ANSWER = 42  # why


def both(values: Any) -> str:
    """One line."""
    text = """
    not a docstring
    """
    return os.fspath(
        text
    )
'''


def test_imports_docstrings_comments_and_blank_lines_do_not_count_as_code() -> None:
    assert code_lines(_MODULE) == 1 + 1 + 3 + 3
