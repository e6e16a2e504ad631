"""The trace of a request: the caller's trace context, and the id of the request."""

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tidemill.domain.submission.trace_context import from_traceparent, from_x_ray, trace_of


def caller_trace(event: APIGatewayProxyEventV2) -> str:
    """Headers that are invalid are ignored: a job is worth more than its trace. `traceparent` comes first."""
    headers = event.headers
    context = from_traceparent(headers.get("traceparent", "")) or from_x_ray(headers.get("x-amzn-trace-id", ""))
    return trace_of(event.request_context.request_id, context)
