"""What the user wrote on the command line."""

import click
from click.core import ParameterSource


def given() -> set[str]:
    """The names of the parameters that the command line has. The others have their defaults."""
    context = click.get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
