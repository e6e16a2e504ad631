"""Templates as they would be deployed, without building the asset, and the asset itself, built once."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, IPolicyValidationPlugin, Validations

from stacks.composition import ROOT, compose
from stacks.stages import STAGES
from tidemill.cdk import asset
from tidemill.cdk.config import StageConfig

Resource = dict[str, Any]


@dataclass(frozen=True)
class Synthesised:
    config: StageConfig
    pipeline: dict[str, Any]
    shortener: dict[str, Any]

    def of_type(self, type_: str) -> Iterator[tuple[str, Resource]]:
        """Logical ids, which are unique across both stacks here, and properties."""
        for template in (self.pipeline, self.shortener):
            for id_, resource in template["Resources"].items():
                if resource["Type"] == type_:
                    yield id_, resource["Properties"]

    def everything(self) -> Iterator[tuple[str, Resource]]:
        for template in (self.pipeline, self.shortener):
            yield from template["Resources"].items()


def verb_of(function: Resource) -> str:
    """The verb of a function, from where its handler is: `tidemill.entrypoints.VERB` or `functions.VERB.handler`."""
    module: str = function["Handler"].rpartition(".")[0]
    return module.removesuffix(".handler").rpartition(".")[2]


Synthesise = Callable[..., Synthesised]


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """Synthesise with the context of `cdk.json` and these settings; `plugins` get to see the app."""
    stub = tmp_path_factory.mktemp("asset")
    (stub / "empty.py").touch()
    done: dict[str, Synthesised] = {}

    def synthesise(*, plugins: Callable[[App], IPolicyValidationPlugin] | None = None, **settings: str) -> Synthesised:
        key = json.dumps(settings, sort_keys=True)
        if key in done and plugins is None:
            return done[key]
        context = json.loads((ROOT / "cdk.json").read_text())["context"]
        app = App(context=context | settings, outdir=str(tmp_path_factory.mktemp("cdk.out")), analytics_reporting=False)
        config = compose(app, asset=str(stub))
        if plugins:
            Validations.of(app).add_plugins(plugins(app))
        assembly = Path(app.synth().directory)
        done[key] = Synthesised(
            config,
            *(
                json.loads((assembly / f"{config.name}-{stack}.template.json").read_text())
                for stack in ("Pipeline", "Shortener")
            ),
        )
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
    """The asset of the local stage, as `cdk deploy` would build it, and in the same place."""
    return asset.build(STAGES["local"](), asset.AppCode(root=ROOT))
