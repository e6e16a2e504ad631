"""A script writes the documents of delayed jobs wrongly, so that no code can read them. A backup has them from before.

What is accepted after a restore point is missing in the restored table, so this drill submits no job until the fix. It
restores a backup, because the embedded AWS knows no earlier point in time than the present one.
"""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill
from demo.drills.stage import ask_for_pass
from tidemill.dynamodb.document import key

#: The jobs become due after their restore.
DELAY_SECONDS: Final = 120
RESTORED: Final = "jobs-restored"


class Restore(Drill):
    name = "restore"
    alarm = "BrokenInvariant"
    heading = "broken-invariant"
    #: The lanes are paused, also for canaries, and then a deployment takes the processors of this host.
    pages = frozenset({"FailedSubmissions", "LateCanary", "SilentScheduler"})
    submits_during = False

    def begin(self) -> Mapping[str, str]:
        # A job that runs after the restore point may run again.
        self.traffic.settle()
        damaged = self.stage.jobs(self.traffic.submit(delay_seconds=DELAY_SECONDS)).values()
        dynamodb, table = self.stage.client("dynamodb"), self.stage.jobs_table()
        backup = dynamodb.create_backup(TableName=table, BackupName="drill")["BackupDetails"]["BackupArn"]
        for job in damaged:
            dynamodb.update_item(
                TableName=table,
                Key=key(job.tenant, job.id),
                UpdateExpression="SET #due = :zero, #attempt = :text",
                ExpressionAttributeNames={"#due": "due", "#attempt": "attempt"},
                ExpressionAttributeValues={":zero": {"N": "0"}, ":text": {"S": "none"}},
            )
        return {"BACKUP": str(backup), "RESTORED": RESTORED}

    def each_minute(self) -> None:
        ask_for_pass(self.stage)

    def deploy(self) -> None:
        table = self.stage.client("dynamodb").describe_table(TableName=RESTORED)["Table"]
        self.stage.deploy([f"jobs_stream={table['LatestStreamArn']}", "epoch=1"])
