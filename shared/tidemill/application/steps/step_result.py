"""The result of a step as JSON text, and back, as the return annotation of its function says."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidemill.application.attempt.result_types import not_readable, returned_type
from tidemill.application.submission.read_back import require_equal
from tidemill.application.submission.validation import stored_json
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import StepError
from tidemill.domain.steps.steps import LARGEST_STEP_BYTES

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class StepResult:
    """The result type of the step `name`. Without annotation, or with `Any`, it is plain JSON. Raises `StepError`."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._returned = returned_type(function)
        self._adapter = self._adapter_of(self._returned)

    def require_readable(self) -> None:
        """Before the function runs: its effect would come before the refusal of any result."""
        if self._adapter and (why := not_readable(self._returned)):
            raise StepError(
                f"no result of the step {self._name!r} would be read back as it is: {why}: let its function return "
                f"what pydantic writes and reads alike"
            )

    def text(self, value: Any) -> str:
        try:
            if self._adapter:
                value = self._adapter.dump_python(value, mode="json", by_alias=True, warnings="error")
            text = stored_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise StepError(
                f"the result of the step {self._name!r} must be JSON, or what the return annotation of its function "
                f"says: {text_of(error)}"
            ) from error
        if len(text) > LARGEST_STEP_BYTES:
            raise StepError(
                f"the result of the step {self._name!r} is {len(text)} bytes; a step may keep at most "
                f"{LARGEST_STEP_BYTES}: store it in a bucket or table of yours, and return its key"
            )
        return text

    def read_back(self, text: str, value: Any) -> Any:
        """What the text of `value` reads as, which a step has just returned. `StepError` unless both are equal."""
        try:
            read = self._decoded(text)
            require_equal(value, read)
        except (TypeError, ValueError, RecursionError) as error:
            raise StepError(
                f"the result of the step {self._name!r} cannot be read back as what its function returned: return what "
                f"fits the return annotation, and text in Unicode, without half a surrogate pair: {text_of(error)}"
            ) from error
        return read

    def value(self, text: str) -> Any:
        """Return the value of a step that an earlier run recorded, perhaps in another version of the code."""
        try:
            return self._decoded(text)
        except ValueError as error:
            raise StepError(
                f"the recorded result of the step {self._name!r} does not fit what its function returns now: let the "
                f"old version finish its jobs first, or accept both forms: {text_of(error)}"
            ) from error

    def _decoded(self, text: str) -> Any:
        return self._adapter.validate_json(text) if self._adapter else json.loads(text)

    def _adapter_of(self, returned: Any) -> "TypeAdapter[Any] | None":
        if returned is Any:
            return None
        from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415 - the job file has imported it

        try:
            return TypeAdapter(returned)
        except PydanticUserError as error:
            raise StepError(
                f"the function of the step {self._name!r} returns {returned!r}, which cannot be recorded: return JSON, "
                f"or what pydantic can turn into JSON"
            ) from error
