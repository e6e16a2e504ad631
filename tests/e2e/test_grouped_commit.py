"""A burst of cheap jobs through the deployed app, claimed and settled together by the real PartiQL."""

import hashlib
import json
from collections import Counter
from uuid import uuid4

from tests.e2e.conftest import Deployed
from tidemill.names import Output

#: Enough for batches of several messages, even if the first ones are small.
JOBS = 60


def test_a_burst_of_jobs_with_grouped_commit_succeeds_at_the_first_attempt(deployed: Deployed) -> None:
    texts = [str(uuid4()) for _ in range(JOBS)]
    jobs = [{"type": "demo.checksum", "payload": {"text": text}} for text in texts]

    answer = deployed.app.request("POST", "/jobs/batch", body=json.dumps({"jobs": jobs}).encode())

    job_ids = [each["job"]["id"] for each in answer.json()["jobs"]]
    ended = [deployed.until(job_id, state="succeeded") for job_id in job_ids]
    assert [job["result"] for job in ended] == [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert {job["attempt"] for job in ended} == {1}
    # Several shared an invocation, and none of its calls for all of them was refused.
    workers = Counter(deployed.document(job_id).history[0].worker for job_id in job_ids[:20])
    assert workers.most_common(1)[0][1] > 1
    group = json.loads(deployed.app.outputs[Output.LOG_GROUPS])["work"]
    refused = deployed.app.client("logs").filter_log_events(logGroupName=group, filterPattern='"grouped commit failed"')
    assert refused["events"] == []
