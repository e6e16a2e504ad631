"""The textbook build: a job queue made of the examples in the documentation of Powertools for AWS Lambda.

The producer keeps its submission idempotent, and so does the consumer for each record. Both use the DynamoDB layer. The
job's own item shows its state, and the consumer updates it twice.
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/
https://docs.aws.amazon.com/powertools/python/latest/utilities/batch/
"""
