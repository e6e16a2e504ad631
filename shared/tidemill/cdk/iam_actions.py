"""IAM actions on tables, files and secrets. A right is one of these actions on a resource."""

from typing import Final

# Each entry of a transaction needs the action of its kind:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
GET: Final = "dynamodb:GetItem"
GET_MANY: Final = "dynamodb:BatchGetItem"
QUERY: Final = "dynamodb:Query"
SCAN: Final = "dynamodb:Scan"
PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"
#: An update by a PartiQL statement: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html
UPDATE_BY_STATEMENT: Final = "dynamodb:PartiQLUpdate"
#: An insert by a PartiQL statement: the same page.
INSERT_BY_STATEMENT: Final = "dynamodb:PartiQLInsert"
#: Accept a job: put the job, its payload and its position in the group; delete a payload that is not needed; get the
#: order of the group, and the job that a replay returns.
ACCEPT: Final = (GET, PUT, DELETE)
#: Advance a group: update the job at its head, put its order and delete its position.
ADVANCE: Final = (GET, PUT, UPDATE, DELETE)
#: Compare a table with the template: its stream and protection, its TTL, its point-in-time recovery.
DESCRIBE_TABLE: Final = ("dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:DescribeContinuousBackups")

GET_FILE: Final = "s3:GetObject"
PUT_FILE: Final = "s3:PutObject"
DELETE_FILE: Final = "s3:DeleteObject"
#: A multipart upload needs `PutObject` for its parts, and this action to discard an unfinished upload.
ABORT_FILE: Final = "s3:AbortMultipartUpload"

READ_KEY: Final = "secretsmanager:GetSecretValue"
