"""`Application`: a group of job types with its stacks and tables, and the rights of its job types."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from tidemill.cdk.config import StageConfig
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.settings import NO_SETTINGS, Reader


class Application:
    """Subclass it in a module of `stacks.applications`, where it is discovered automatically."""

    #: The application's settings (`-c name=value`), and the function that reads each text.
    settings: ClassVar[Mapping[str, Reader]] = NO_SETTINGS

    def __init__(self, config: StageConfig, settings: Mapping[str, Any]) -> None:
        """`settings` holds the settings that are set. Raises `SettingError` for an invalid value."""
        self.config = config
        self.given = settings

    def files(self) -> Mapping[str, Path]:
        """Files to ship beside the code, by their path in the asset."""
        return MappingProxyType({})

    def add_to(self, pipeline: Pipeline, asset: str) -> None:
        """Create the resources. `asset` is the folder with the code of all functions."""
