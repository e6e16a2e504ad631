"""A change of a syntax tree finds its part by what it means, and says why a part cannot be found."""

import ast
from typing import Final

import pytest

from tests.simulation.mutants.tree_change import ChangeError, changed

CODE: Final = '''
class Store:
    def read(self, jobs, **more):
        """Read #1."""
        seen = [job.id for job in jobs if job.live]  # in order
        try:
            self.keep({"seen": seen, "count": len(seen)}, now=1, then=[2, 3])
            self.close()
        except ValueError:
            return None
        match seen:
            case []:
                return "#1"
        return len(seen)

    def close(self):
        self.closed = True
'''


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("job.live", "True", "if job.live]", "if True]"),
        ("2, 3", "2", "[2, 3]", "[2]"),
        ("then=[2,\n3]", "", ", then=[2, 3]", ""),
        ("'count': len(seen)", "", ', "count": len(seen)}', "}"),
        ("self.close()\n", "", "            self.close()\n", ""),
        ("for job in jobs if job.live", "for job in jobs", " if job.live", ""),
        ("except ValueError:\n    return None", "except KeyError:\n    return None", "ValueError", "KeyError"),
        ("case []:\n    return '#1'", "case _:\n    return '#1'", "case []", "case _"),
        ("return len(seen)", "pass", "return len(seen)", "pass"),
    ],
)
def test_each_form_of_a_part_is_replaced(old: str, new: str, before: str, after: str) -> None:
    assert ast.dump(changed(CODE, "Store.read", old, new)) == ast.dump(ast.parse(CODE.replace(before, after)))


def test_the_last_statement_of_a_block_leaves_a_pass() -> None:
    assert "def close(self):\n        pass" in ast.unparse(changed(CODE, "Store.close", "self.closed = True", ""))


@pytest.mark.parametrize(
    ("function", "old", "new", "reason"),
    [
        ("Store.write", "seen", "jobs", "0 functions or classes have the name Store.write"),
        ("Store.read", "jobs[0]", "jobs", "occurs 0 times in Store.read"),
        ("Store.read", "len(seen)", "1", "occurs 2 times in Store.read"),
        ("", "seen =", "jobs", "cannot be read as parts"),
    ],
)
def test_an_error_says_why_a_part_cannot_be_changed(function: str, old: str, new: str, reason: str) -> None:
    with pytest.raises(ChangeError, match=reason):
        changed(CODE, function, old, new)
