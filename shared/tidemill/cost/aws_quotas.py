"""Figures of AWS that bound throughput, each with its page. Those named a quota by AWS can be raised on request."""

from typing import Final

# DynamoDB.

#: The write units that a partition of a table or index takes each second.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
PARTITION_WRITE_UNITS: Final = 1_000
#: The write units a second that a new table or index on demand takes at once.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
NEW_TABLE_WRITE_UNITS: Final = 4_000
#: Later it takes twice its previous peak at once, and more only after this time.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
PEAK_FACTOR: Final = 2
PEAK_SECONDS: Final = 30 * 60
#: A quota "for any table, or any individual GSI within that table".
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
TABLE_WRITE_UNITS: Final = 40_000
#: How often Lambda reads a shard of a stream each second. A shard has the changes of one partition.
#: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
STREAM_POLLS_PER_SECOND: Final = 4

# Lambda.

#: A mapping of a standard queue, in batches at a time: what it begins with, what each minute adds while messages wait,
#: and its maximum. Without a maximum concurrency it has 1,250, but `MaximumConcurrency` itself has 1,000 at most.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
#: https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html
MAPPING_BEGINS_WITH: Final = 5
MAPPING_RAMP_PER_MINUTE: Final = 300
MAPPING_CONCURRENCY: Final = 1_000
#: Execution environments that a function gets besides those it has, each second: 1,000 in ten.
#: https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html
ENVIRONMENTS_PER_SECOND: Final = 100
#: A quota of the account and region. A new account may have less.
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ACCOUNT_CONCURRENCY: Final = 1_000

# API Gateway and SQS.

#: A quota of the account and region, in requests a second; 2,500 in small regions.
#: https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
ACCOUNT_API_RATE: Final = 10_000
#: A quota of a queue.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
MESSAGES_IN_FLIGHT: Final = 120_000
