"""The worked example: a URL shortener, and the rights of its job types."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from aws_cdk import App

from shortener.names import Env
from stacks.application import Application
from stacks.applications.shortener.stack import ShortenerStack
from stacks.applications.shortener.tables import ShortenerTables
from tidemill.cdk.config import StageConfig
from tidemill.cdk.iam_actions import ABORT_FILE, DELETE_FILE, GET, GET_FILE, PUT, PUT_FILE, QUERY, UPDATE
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.settings import Reader, integer
from tidemill.cdk.synth_errors import SettingError
from tidemill.names import EXPORTS_PREFIX, Lane

#: Path in the asset of the MaxMind database, if one is configured.
GEOIP_DATABASE: Final = "geoip.mmdb"


class Shortener(Application):
    #: `trusted_proxy_hops`: the number of proxies in front of the API whose `X-Forwarded-For` entries are trusted.
    #: `geoip_database`: path on the host of a MaxMind database to ship and to use instead of the data of iptocc.
    settings: ClassVar[Mapping[str, Reader]] = {"trusted_proxy_hops": integer, "geoip_database": str}

    def __init__(self, config: StageConfig, settings: Mapping[str, Any]) -> None:
        super().__init__(config, settings)
        # The emulator sees every client at 127.0.0.1, so the demo's visitors send their addresses in the header.
        self.trusted_proxy_hops: int = settings.get("trusted_proxy_hops", 1 if config.stage == "local" else 0)
        self.geoip_database: str = settings.get("geoip_database", "")
        if self.trusted_proxy_hops < 0:
            raise SettingError(
                f"trusted_proxy_hops {self.trusted_proxy_hops} must not be negative: set 0 without a proxy"
            )

    def files(self) -> Mapping[str, Path]:
        return {GEOIP_DATABASE: Path(self.geoip_database)} if self.geoip_database else {}

    def add_to(self, pipeline: Pipeline, asset: str) -> None:
        tables = ShortenerTables(pipeline, "Shortener", config=self.config)
        self._allow_jobs(pipeline, tables)
        ShortenerStack(
            App.of(pipeline),  # type: ignore[arg-type]  # a pipeline is always in an app
            config=self.config,
            asset=asset,
            pipeline=pipeline,
            tables=tables,
            trusted_proxy_hops=self.trusted_proxy_hops,
        )

    def _allow_jobs(self, pipeline: Pipeline, tables: ShortenerTables) -> None:
        """All job types of the shortener are on the bulk lane, where visitors delay no job of a caller."""
        # click.enrich reads a counter, then writes the click in the transaction of its success.
        pipeline.allow_jobs([GET, PUT, UPDATE], [tables.clicks.table_arn], lane=Lane.BULK)
        # clicks.rollup and clicks.export
        pipeline.allow_jobs([QUERY], [tables.clicks.table_arn], lane=Lane.BULK)
        pipeline.allow_jobs([GET], [tables.links.table_arn], lane=Lane.BULK)
        pipeline.allow_job_files([GET_FILE, PUT_FILE, DELETE_FILE, ABORT_FILE], prefix=EXPORTS_PREFIX, lane=Lane.BULK)
        pipeline.add_job_variables(
            {
                Env.LINKS_TABLE: tables.links.table_name,
                Env.CLICKS_TABLE: tables.clicks.table_name,
                Env.EXPORTS_BUCKET: pipeline.storage.files.bucket.bucket_name,
                Env.GEOIP_DATABASE: GEOIP_DATABASE if self.geoip_database else "",
            },
            lane=Lane.BULK,
        )
