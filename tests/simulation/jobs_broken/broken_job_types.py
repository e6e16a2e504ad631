"""A file that declares the types of one version, and cannot be imported."""

from tidemill.domain.errors import DeclarationError

raise DeclarationError("it needs a variable that the function does not have")
