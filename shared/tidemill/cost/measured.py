"""What the benchmark and the tests have measured about one job. Each figure names what keeps it true."""

from typing import Final

from tidemill.dynamodb.payloads import ITEM_KEY_BYTES

# Bytes of items, without payload and result. `tests/integration/test_cost_model.py` compares the write units that
# follow from them with those of real jobs.

#: The document of a job from its insert to its settle, with the room that its first run takes.
DOCUMENT_BYTES: Final = 500
PAYLOAD_KEY_BYTES: Final = ITEM_KEY_BYTES
#: What DynamoDB adds to each item and index entry for storage.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
STORAGE_OVERHEAD_BYTES: Final = 100
#: The bytes of the key of the table and the keys of the index.
INDEX_ENTRY_BYTES: Final = 180

# Units of table capacity. The same test counts them.

#: A run that fails, with a message of 100 characters and a traceback, and the claim of the next run. Both write the
#: document while it holds the traceback, which takes a second unit.
FAILED_RUN_WRITE_UNITS: Final = 4
#: What a job of a busy group writes besides its insert, claim and settle: the position and the tail with the insert,
#: and three items with its turn, each in a transaction, which costs double. One claim is refused: the worker took the
#: turn at once, and the message of the publisher comes after it.
GROUP_WRITE_UNITS: Final = 11
GROUP_READ_UNITS: Final = 5
#: Publish looks whether a job with a first message has begun.
BEGUN_READ_UNITS: Final = 1
#: A run takes its slot and gives it back.
LIMIT_WRITE_UNITS: Final = 2

# Calls of one job to DynamoDB, one after another, that nothing overlaps within the job.

#: Claim and settle.
WORKER_CALLS: Final = 2
GROUP_SUBMIT_CALLS: Final = 2
GROUP_WORKER_CALLS: Final = 5
LIMIT_CALLS: Final = 2
#: The documents that a batch has claimed together are read with one call.
GROUPED_READ_CALLS: Final = 1

# Milliseconds. `tests/unit/docs/test_cost_pages.py` compares those of CPU with the tables of docs/performance.md.

#: Milliseconds of one processor for each job.
SUBMIT_CPU_MS: Final = 1.27
PUBLISH_CPU_MS: Final = 0.20
WORK_CPU_MS: Final = 2.65
#: With grouped commit, in a batch of ten.
GROUPED_WORK_CPU_MS: Final = 1.28
#: One call of DynamoDB or SQS. An assumption: AWS promises "single-digit milliseconds" for DynamoDB.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html
CALL_MS: Final = 5.0
#: One call of S3: the lower bound of what AWS names for small objects, 100 to 200 ms.
#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
FILE_CALL_MS: Final = 100.0
#: Memory with which a function has one processor. Our functions use no second one.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
ONE_PROCESSOR_MB: Final = 1769
#: Memory of the functions that a profile does not set.
FUNCTION_MB: Final = 512

# Bytes of log. `python -m demo.figures log-bytes` counts those of our lines, and a test compares them.

ACCEPTED_LINE_BYTES: Final = 329
DISPATCHED_LINE_BYTES: Final = 169
RUN_LINES_BYTES: Final = 1012
#: With a traceback of 20 frames.
FAILED_RUN_LINES_BYTES: Final = 1837
#: The lines START, END and REPORT that Lambda writes for each invocation; the size of AWS's own example.
#: https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
PLATFORM_LINES_BYTES: Final = 340
