"""The check finds each banned word in the text that a person reads, and leaves code, quotations and correct English."""

import re
from pathlib import Path
from typing import Protocol

import pytest

from tools import plain_english


class Found(Protocol):
    """The findings in one file with this text, as they are printed."""

    def __call__(self, text: str, *, name: str = "page.md", names: bool = False) -> list[str]: ...


@pytest.fixture
def found(tmp_path: Path) -> Found:
    def of(text: str, *, name: str = "page.md", names: bool = False) -> list[str]:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return [str(finding) for finding in plain_english.findings(tmp_path, names=names)]

    return of


@pytest.mark.parametrize(
    "text",
    [
        "Whoever calls it waits.",
        "It runs whatever comes.",
        "Nobody reads it.",
        "Somebody cancels the job.",
        "Many people read it.",
        "Its letter is deleted.",
        "The document is the record, the letter only the bell.",
        "The alarm rings.",
        "After 14 days it falls silent.",
        "It runs when the alarm is over.",
        "Mend the cause.",
        "Something is amiss.",
        "The caller is told of it.",
        "The log tells of it.",
        "It gets another life.",
        "It ended without a word.",
        "A dead head blocks its group.",
        "It reads what is stored.",
        "A key is no text.",
        "The limits are none of ours.",
        "There is one table.",
        "What acts, acts twice.",
        "It ended without\na word.",
    ],
)
def test_a_banned_word_is_found(found: Found, text: str) -> None:
    assert found(text)


@pytest.mark.parametrize(
    "text",
    [
        "A message goes to the dead-letter queue.",
        "Use lower-case letters and digits, or capital letters.",
        "The lease is no longer valid, and the delay is no more than 15 minutes.",
        "What does a job cost?",
        "The README amends and recommends; the string spring brings a bellwether.",
        'Earlier releases said "another life" here.',
        'Earlier releases said "another\nlife" here.',
        "The parameter was called `dead_head`, and `what nobody can read` was a check.",
        "```\nnobody\n```\n",
        "[the page](letters/nobody.md)",
        "https://example.com/nobody",
        "<!-- whatever -->",
    ],
)
def test_correct_english_quotations_and_code_are_left_alone(found: Found, text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '"""Nobody reads this."""\n',
        "# Nobody reads this.\n",
        "#: Nobody reads this.\n",
        'raise ValueError("nobody reads this")\n',
        'raise ValueError(f"nobody reads {this}")\n',
        "# It ended without\n# a word.\n",
        'raise ValueError("it ended without " "a word")\n',
    ],
)
def test_docstrings_comments_and_messages_of_python_are_read(found: Found, text: str) -> None:
    assert len(found(text, name="module.py")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "nobody = 1\n",
        'kind = "nobody"\n',
        '"""The string "nobody reads this" is a quotation, and so is `nobody`."""\n',
        '@cites(GUIDE, "If there is no matching item, it is no error.")\ndef test() -> None: ...\n',
        '"""What a refused claim means for its message."""\n',
        'self._world.log("console", "moves a letter back")\n',
        'world.log(name, "was told")\n',
        '"""`endpoint` is None for moto."""\n',
    ],
)
def test_names_and_quotations_of_python_are_left_alone(found: Found, text: str) -> None:
    assert found(text, name="module.py") == []


@pytest.mark.parametrize(
    "text",
    [
        '"""Of a job."""\n',
        'def f():\n    """As `g`, for a job."""\n',
        'class A:\n    """That of a job.\n\n    It is one.\n    """\n',
        "#: Those of a job.\nx = 1\n",
    ],
)
def test_a_docstring_or_comment_without_a_verb_is_found(found: Found, text: str) -> None:
    assert len(found(text, name="module.py")) == 1


@pytest.mark.parametrize(
    "text",
    [
        '"""Often it is one."""\n',
        "# It is as long as a job.\n",
        'x = "Of a job"\n',
        '"""Jobs.\n\nOf these, one runs."""\n',
    ],
)
def test_a_sentence_and_a_text_of_the_program_may_have_these_words(found: Found, text: str) -> None:
    assert found(text, name="module.py") == []


def test_the_name_of_a_test_is_read_when_asked(found: Found) -> None:
    text = "def test_whatever_comes_is_kept() -> None: ...\n"

    assert found(text, name="module.py") == []
    assert len(found(text, name="module.py", names=True)) == 1


def test_a_finding_names_path_line_word_and_a_better_word(found: Found) -> None:
    assert found("# Title\n\nIt was mended.\n") == ["page.md:3: mended: fix"]
    assert found('"""A module.\n\nIt was mended.\n"""\n', name="module.py")[0] == "module.py:3: mended: fix"
    assert found("x = 1\n# A comment.\n# It was mended.\n", name="module.py")[0] == "module.py:3: mended: fix"


def test_every_banned_word_has_a_better_one_and_a_pattern_that_compiles() -> None:
    for pattern, better in plain_english.BANNED + plain_english.BANNED_IN_DOCUMENTS:
        assert re.compile(pattern).groups == 0
        assert better


@pytest.mark.parametrize(("text", "code"), [("It was mended.", 1), ("It was fixed.", 0)])
def test_the_exit_code_is_one_when_a_word_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    code: int,
) -> None:
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["plain_english", "--root", str(tmp_path)])

    assert plain_english.main() == code
    assert bool(capsys.readouterr().out) is bool(code)


def test_counts_are_per_word_and_per_top_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("Mend it, then mend it again.", encoding="utf-8")
    (tmp_path / "README.md").write_text("Nobody reads it.", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["plain_english", "--count", "--root", str(tmp_path)])

    plain_english.main()

    counts = capsys.readouterr().out.splitlines()
    assert counts == [
        " count  word",
        "     2  mend",
        "     1  nobody",
        " count  folder",
        "     2  docs",
        "     1  .",
        "     3  in all",
    ]
