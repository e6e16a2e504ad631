"""How often and for how long a call by the clock is tried. May not import CDK."""

from typing import Final

#: Of one that must not be missed: by the scheduler while Lambda does not take it, and by Lambda while the function
#: fails. All are the most that they accept.
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
#: https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
DELIVERY_TRIES: Final = 185
DELIVERY_SECONDS: Final = 24 * 60 * 60
FUNCTION_RETRIES: Final = 2
FUNCTION_SECONDS: Final = 6 * 60 * 60
#: For how long a call may wait that is not tried again: the least that both accept.
PROMPT_SECONDS: Final = 60
