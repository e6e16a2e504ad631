"""A backlog that is due at once, of jobs whose service serves less the more of them call it at once."""
