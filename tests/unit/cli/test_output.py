"""Tables and JSON, in a pipe and on a terminal."""

import json

import click
import pytest

from tidemill.cli.output import plain_table, say, show, show_json, show_prose, show_table


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "30"}.items():
        monkeypatch.setenv(name, value)


def test_a_plain_table_aligns_by_display_width_and_truncates_nothing() -> None:
    wide = "x" * 300
    lines = plain_table(("A", "B"), [("漢字", "1"), ("abc", wide), ("\x1b", "")]).splitlines()
    assert lines == ["A     B", "漢字  1", f"abc   {wide}", "\\x1b"]


def test_results_go_to_stdout_and_messages_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show("result")
    say("note")
    show_table(("A",), [("1",)])
    show_table(("B",), [("2",)], stderr=True)
    out, err = capsys.readouterr()
    assert (out, err) == ("result\nA\n1\n", "note\nB\n2\n")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_wraps_messages_but_not_results(capsys: pytest.CaptureFixture[str]) -> None:
    text = "words " * 10
    show(text)
    say(text)
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert err.count("\n") > 1


@pytest.mark.usefixtures("terminal")
def test_a_terminal_wraps_prose_between_words_and_keeps_ids_whole(capsys: pytest.CaptureFixture[str]) -> None:
    job_id = "01a1faf4-3139-7af6-9982-09538b03026f"
    show_prose(f"  The dead job {job_id} blocks its group.", indent="    ")
    assert capsys.readouterr().out.splitlines() == ["  The dead job", f"    {job_id}", "    blocks its group."]


def test_prose_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_prose("words " * 40)
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.usefixtures("terminal")
def test_markup_is_printed_literally(capsys: pytest.CaptureFixture[str]) -> None:
    show("[bold]:smile:[/bold]")
    show_table(("A",), [("[red]:smile:",)])
    assert "[bold]:smile:[/bold]" in (out := capsys.readouterr().out)
    assert "[red]:smile:" in out


@pytest.mark.usefixtures("terminal")
def test_json_on_a_terminal_parses_to_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"text": "\x1b\x9b\u202e\u2028 Zoë", "list": [1, None, "a long text that is wider than the terminal"]}
    show_json(value)
    out = click.unstyle(capsys.readouterr().out)
    assert json.loads(out) == value
    assert "Zoë" in out
    assert "\x1b" not in out


def test_json_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": "\n"})
    assert capsys.readouterr().out == '{"a":"\\n"}\n'


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    show("x", style="yellow")
    monkeypatch.setenv("NO_COLOR", "1")
    show("x", style="yellow")
    assert capsys.readouterr().out == "\x1b[33mx\x1b[0m\nx\n"
