"""What runs on the pipeline: an application says which stacks and tables it has, and what its job types may touch."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from tidemill.cdk.config import StageConfig
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.settings import NO_SETTINGS, Reader


class Application:
    """Subclass it in a module of `stacks.applications`, where it is discovered automatically."""

    #: Settings of its own (`-c name=value`), and how their text is read.
    settings: ClassVar[Mapping[str, Reader]] = NO_SETTINGS

    def __init__(self, config: StageConfig, settings: Mapping[str, Any]) -> None:
        """`settings` are those that are given. Raises `SettingError` for one that cannot work."""
        self.config = config
        self.given = settings

    def files(self) -> Mapping[str, Path]:
        """Files for the functions beside the code, by their place in the asset."""
        return MappingProxyType({})

    def add_to(self, pipeline: Pipeline, asset: str) -> None:
        """Make the resources. `asset` is the folder with the code of all functions."""
