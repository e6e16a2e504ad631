"""Fixtures: templates as they would be deployed, with a stub asset, and the real asset, built once."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, IPolicyValidationPlugin, Validations

from stacks.composition import ROOT, compose, read_settings
from stacks.stages import STAGES
from tests.support.stub_asset import stub_asset
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions import asset
from tidemill.names import LIVE_ALIAS, Env, Lane

Resource = dict[str, Any]


@dataclass(frozen=True)
class Synthesised:
    config: StageConfig
    pipeline: dict[str, Any]
    shortener: dict[str, Any]
    #: The warnings of the synth.
    warnings: list[str] = field(default_factory=list)

    def of_type(self, type_: str) -> Iterator[tuple[str, Resource]]:
        """Logical ids and properties of all resources of this type. Only the ids within `Api` occur in both stacks."""
        for template in (self.pipeline, self.shortener):
            for id_, resource in template["Resources"].items():
                if resource["Type"] == type_:
                    yield id_, resource["Properties"]

    def behind(self, alias: Any) -> str:
        """The logical id of the function whose alias this reference names. Fails for any other reference."""
        properties = dict(self.of_type("AWS::Lambda::Alias"))[alias["Ref"]]
        assert properties["Name"] == LIVE_ALIAS
        return str(properties["FunctionName"]["Ref"])

    def everything(self) -> Iterator[tuple[str, Resource]]:
        for template in (self.pipeline, self.shortener):
            yield from template["Resources"].items()


def verb_of(function: Resource) -> str:
    """The VERB in a function's handler: `tidemill.entrypoints.VERB.handle` or `functions.VERB.handler.handle`."""
    module: str = function["Handler"].rpartition(".")[0]
    return module.removesuffix(".handler").rpartition(".")[2]


def without_digests(template: str) -> str:
    """Without the digest of each function that ends the logical id of its version: it changes with the function."""
    return re.sub(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}", r"\1", template)


def _metadata(assembly: Path) -> str:
    """Return the metadata of all stacks as JSON."""
    return "".join(file.read_text() for file in assembly.glob("*.json") if "template" not in file.name)


Synthesise = Callable[..., Synthesised]


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """Synthesise with the context of `cdk.json` and these settings. `plugins` validates the app."""
    done: dict[str, Synthesised] = {}

    @cache
    def stub(job_packages: tuple[str, ...]) -> str:
        return stub_asset(tmp_path_factory.mktemp("asset"), job_packages)

    def synthesise(*, plugins: Callable[[App], IPolicyValidationPlugin] | None = None, **settings: str) -> Synthesised:
        key = json.dumps(settings, sort_keys=True)
        if key in done and plugins is None:
            return done[key]
        context = json.loads((ROOT / "cdk.json").read_text())["context"]
        app = App(context=context | settings, outdir=str(tmp_path_factory.mktemp("cdk.out")), analytics_reporting=False)
        config = compose(app, asset=stub(read_settings(context | settings).stage.job_packages))
        if plugins:
            Validations.of(app).add_plugins(plugins(app))
        assembly = Path(app.synth().directory)
        pipeline, shortener = (
            json.loads((assembly / f"{config.name}-{stack}.template.json").read_text())
            for stack in ("Pipeline", "Shortener")
        )
        warnings = sorted(set(re.findall(r'"aws:cdk:warning",\s*"data": "([^"]*)"', _metadata(assembly))))
        done[key] = Synthesised(config, pipeline, shortener, warnings)
        return done[key]

    return synthesise


@pytest.fixture(scope="session")
def dev(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="dev")


@pytest.fixture(scope="session")
def prod(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="prod")


@pytest.fixture(scope="session")
def built() -> Path:
    """The asset of the local stage, built as `cdk deploy` builds it, in the same folder."""
    return asset.build(STAGES["local"](), asset.AppCode(root=ROOT))


def functions_by_key(app: Synthesised) -> dict[str, Resource]:
    """By the keys of `Output.FUNCTIONS`: the verb, and for a worker outside the default lane verb and lane."""
    return {_function_key(function): function for _, function in app.of_type("AWS::Lambda::Function")}


def _function_key(function: Resource) -> str:
    verb = verb_of(function)
    lanes = json.dumps(function["Environment"]["Variables"].get(Env.LANES, "")) if verb == "work" else ""
    (lane,) = [lane for lane in Lane if f'\\"{lane}\\"' in lanes] or [Lane.DEFAULT]
    return verb if lane is Lane.DEFAULT else f"{verb}-{lane}"
