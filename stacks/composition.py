"""Composes the app: the settings, the asset, the pipeline's stack, and every application."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from aws_cdk import App

import stacks.applications
from stacks.app_stack import AppStack
from stacks.application import Application
from stacks.stages import STAGES
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.asset import AppCode, build
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.settings import Settings, from_context

#: The folder of `cdk.json`.
ROOT: Final = Path(__file__).resolve().parents[1]


def compose(app: App, *, asset: str | None = None) -> StageConfig:
    """Create all stacks. Returns the configuration of the stage. Without `asset`, builds it. Raises `SynthError`."""
    settings = read_settings(app.node.get_all_context())
    config = settings.stage
    applications = [application_type(config, settings.app) for application_type in _applications()]
    if asset is None:
        files = {path: file for application in applications for path, file in application.files().items()}
        asset = str(build(config, AppCode(root=ROOT, files=files)))
    stack = AppStack(app, "Pipeline", config=config, description="Tidemill: jobs, their lanes and their API")
    pipeline = Pipeline(stack, "Default", config=config, asset=asset)
    for application in applications:
        application.add_to(pipeline, asset)
    return config


def read_settings(context: dict[str, object]) -> Settings:
    """The stage and the settings of the applications. Raises `SettingError`."""
    readers = {name: reader for each in _applications() for name, reader in each.settings.items()}
    return from_context(context, STAGES, readers)


def _applications() -> Iterator[type[Application]]:
    """Every `Application` that a module of `stacks.applications` defines, sorted by the name of the module."""
    package = stacks.applications
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__, prefix=f"{package.__name__}.")):
        for value in vars(importlib.import_module(module)).values():
            if isinstance(value, type) and issubclass(value, Application) and value.__module__ == module:
                yield value
