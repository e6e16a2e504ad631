"""Adds the properties of the visitor to clicks, and counts each click exactly once.

Of network and user agent it keeps the country and the names of browser, system and device. The rest goes with the job.
"""

from dataclasses import asdict

from shortener import clock, composition
from shortener.click import CLICK, KEPT, Click
from shortener.click_writes import ClickWrites
from shortener.names import VISITORS
from shortener.visitor import enrich
from tidemill import Done, Lane, PermanentJobError, Run, job_type


@job_type(CLICK, payload=Click, lane=Lane.BULK, retention_days=KEPT.days, batch=100)
def click_enrich(clicks: list[Click], runs: list[Run]) -> list[Done | PermanentJobError]:
    writes = ClickWrites(composition.clicks(), first_job_id=runs[0].job_id, now=clock.now())
    return [_enriched(click, run, writes) for click, run in zip(clicks, runs, strict=True)]


def _enriched(click: Click, run: Run, writes: ClickWrites) -> Done | PermanentJobError:
    if run.tenant != VISITORS:
        # Otherwise a caller that may submit jobs could count clicks on the links of other tenants.
        return PermanentJobError("only the redirect may submit clicks; follow the link instead")
    visitor = enrich(click.address, click.user_agent)
    return Done(result=asdict(visitor), writes=writes.of(click, visitor, job_id=run.job_id, at=run.submitted_at))
