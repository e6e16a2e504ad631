"""The names of what functions are allowed to do with tables and files."""

from typing import Final

# Each entry of a transaction takes the right of its kind:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
GET: Final = "dynamodb:GetItem"
GET_MANY: Final = "dynamodb:BatchGetItem"
QUERY: Final = "dynamodb:Query"
SCAN: Final = "dynamodb:Scan"
PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"
#: To accept a job: it, its payload and its place in a group are put; a payload that turns out not to be needed is
#: taken back; the order of a group, and what a replay answers with, are read.
ACCEPT: Final = (GET, PUT, DELETE)
#: To move the head of a group: its job is updated, its order put and its place deleted.
ADVANCE: Final = (GET, PUT, UPDATE, DELETE)

GET_FILE: Final = "s3:GetObject"
LIST_FILES: Final = "s3:ListBucket"
PUT_FILE: Final = "s3:PutObject"
DELETE_FILE: Final = "s3:DeleteObject"
#: A file that is written in parts is put, part by part; what is given up goes.
ABORT_FILE: Final = "s3:AbortMultipartUpload"

READ_KEY: Final = "secretsmanager:GetSecretValue"
