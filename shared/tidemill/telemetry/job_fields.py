"""The fields by which a log line names its job. The same names in every line, so that one filter finds them all."""

from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.job import Job


def job_fields(job: Job) -> dict[str, object]:
    return {
        "tenant": job.tenant,
        "job_id": job.id,
        "job_type": job.type,
        "lane": job.lane,
        "generation": job.generation,
        "attempt": job.attempt,
        "trace": job.trace,
    }


def reference_fields(reference: Reference) -> dict[str, object]:
    return {
        "tenant": reference.tenant,
        "job_id": reference.job_id,
        "generation": reference.generation,
        "trace": reference.trace,
    }
