"""What a test or a demo does to the deployed app, without an emulator."""

import json
from pathlib import Path
from unittest.mock import MagicMock, call

import pytest

from tidemill.local.deployed_app import App
from tidemill.names import LIVE_ALIAS, Output


def test_a_changed_variable_is_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = MagicMock()
    functions.get_function_configuration.return_value = {"Environment": {"Variables": {"OLD": "1"}}}
    functions.publish_version.return_value = {"Version": "7"}
    monkeypatch.setattr(App, "client", lambda _, service: {"lambda": functions}[service])
    app = App(tmp_path, "http://127.0.0.1:1", {Output.FUNCTIONS: json.dumps({"work": "app-Work"})})

    app.set_function_variable("work", "NEW", "2")

    assert functions.method_calls[1:] == [
        call.update_function_configuration(
            FunctionName="app-Work", Environment={"Variables": {"OLD": "1", "NEW": "2"}}
        ),
        call.publish_version(FunctionName="app-Work"),
        call.update_alias(FunctionName="app-Work", Name=LIVE_ALIAS, FunctionVersion="7"),
    ]
