"""The code of the guides on installing and deploying synthesises: an app of one's own, and applications of this app."""

import json
import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import App, Stack

from stacks.application import Application
from stacks.composition import ROOT
from stacks.stages import STAGES
from tests.infrastructure.conftest import without_digests
from tests.support.document_blocks import code_of
from tests.support.stub_asset import stub_asset
from tidemill.cdk.functions import asset as asset_module
from tidemill.cdk.pipeline import Pipeline

Template = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An app without job types, and beside them a file that stands for the asset."""
    jobs = tmp_path / "functions" / "jobs"
    jobs.mkdir(parents=True)
    (jobs / "__init__.py").touch()
    stub_asset(tmp_path / "asset", root=tmp_path)
    return tmp_path


def _application(page: str, name: str) -> type[Application]:
    scope: dict[str, Any] = {"__name__": name}
    exec(compile(code_of(ROOT / page, name), name, "exec"), scope)
    (found,) = (value for value in scope.values() if isinstance(value, type) and value.__module__ == name)
    assert issubclass(found, Application)
    return found


def _pipeline(folder: Path) -> tuple[App, Pipeline]:
    app = App(outdir=str(folder / "cdk.out"), analytics_reporting=False)
    stack, config = Stack(app, "Pipeline"), STAGES["dev"]()
    return app, Pipeline(stack, "Default", config=config, asset=str(folder / "asset"))


def _template(app: App, stack: str) -> Template:
    template: Template = json.loads((Path(app.synth().directory) / f"{stack}.template.json").read_text())
    return template


def _workers(template: Template, text: str) -> list[str]:
    """The lanes whose workers have `text` in a policy or a variable."""
    found = {
        match[1]
        for id_, resource in template["Resources"].items()
        if (match := re.match(r"Lane([a-z]+)Worker(?:Role|Function)", id_)) and text in json.dumps(resource)
    }
    return sorted(found)


def test_the_app_of_the_install_guide_has_the_logical_ids_of_this_app(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asset_module, "build", lambda _config, _code: folder / "asset")
    monkeypatch.setattr(aws_cdk, "App", partial(App, outdir=str(folder / "cdk.out"), analytics_reporting=False))
    script = folder / "app.py"
    script.write_text(code_of(ROOT / "docs/start/install-the-engine.md", "app.py"))
    app = runpy.run_path(str(script))["app"]
    template = _template(app, "Tidemill-dev-Pipeline")

    assert _workers(template, "ses:SendEmail") == ["bulk", "default"]
    snapshot = (ROOT / "tests/infrastructure/__snapshots__/test_snapshot.ambr").read_text()
    assert {"JobsTable10C8EDF6", "SubmitFunction6C3E2BAF"} <= set(template["Resources"])
    assert [id_ for id_ in template["Resources"] if without_digests(id_) not in snapshot] == []


def test_the_application_of_the_deploy_guide_gives_bulk_workers_alone_their_right(folder: Path) -> None:
    app, pipeline = _pipeline(folder)
    _application("docs/start/deploy.md", "stacks/applications/mail.py")(pipeline.config, {}).add_to(pipeline, "")
    template = _template(app, "Pipeline")

    assert _workers(template, "ses:SendEmail") == ["bulk"]
    assert _workers(template, "MAIL_SENDER") == ["bulk"]


def test_the_application_of_the_settings_page_reads_its_setting(folder: Path) -> None:
    app, pipeline = _pipeline(folder)
    reports = _application("docs/reference/settings.md", "stacks/applications/reports.py")
    given = {name: read("7") for name, read in reports.settings.items()}
    reports(pipeline.config, given).add_to(pipeline, "")

    assert _workers(_template(app, "Pipeline"), '"REPORT_DAYS": "7"') == ["bulk", "default"]
