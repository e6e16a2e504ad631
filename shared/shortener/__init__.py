"""The code that the functions of the URL shortener share. The engine does not import it."""
