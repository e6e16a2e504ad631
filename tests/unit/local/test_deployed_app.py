"""The deployed app finds its resources as AWS lists them."""

import json
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from tidemill.local.deployed_app import App
from tidemill.names import Output


class Functions:
    """Lambda, where the mappings belong to an alias."""

    def get_alias(self, *, FunctionName: str, Name: str) -> dict[str, str]:  # noqa: N803
        return {"AliasArn": f"arn:aws:lambda:eu-central-1:1:function:{FunctionName}:{Name}"}

    def list_event_source_mappings(self, *, FunctionName: str) -> dict[str, list[dict[str, str]]]:  # noqa: N803
        owned = ["first", "repaired"] if FunctionName.endswith("function:Publisher:live") else []
        return {"EventSourceMappings": [{"UUID": uuid} for uuid in owned]}


def test_the_mapping_of_a_function_is_that_of_its_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(App, "client", create_autospec(App.client, return_value=Functions()))
    app = App(Path(), "http://127.0.0.1:1", {Output.FUNCTIONS: json.dumps({"publish": "Publisher"})})

    assert app.mapping("publish") == "first"
