"""How often and for how long a scheduled call is retried. May not import CDK."""

from typing import Final

#: For a call that must not be missed. EventBridge Scheduler retries while Lambda does not accept the call, and Lambda
#: retries while the function fails. All values are the maximum of the service.
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
#: https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
DELIVERY_TRIES: Final = 185
DELIVERY_SECONDS: Final = 24 * 60 * 60
FUNCTION_RETRIES: Final = 2
FUNCTION_SECONDS: Final = 6 * 60 * 60
#: The longest wait of a call that is not retried: the minimum of both services.
PROMPT_SECONDS: Final = 60
