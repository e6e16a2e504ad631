"""What stops a synth, and the checks that raise it."""

import re


class SynthError(Exception):
    """Stops a synth. Its text is one line that says what is wrong and what to do."""


class SettingError(SynthError):
    """An invalid setting, or an invalid value of a stage."""


def require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise SettingError(message)


def require_form(setting: str, value: str, pattern: str, form: str) -> None:
    require(re.fullmatch(pattern, value) is not None, f"{setting} {value!r} is not {form}")
