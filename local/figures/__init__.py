"""Figures that a person may measure again: each module prints one, from the app as it is deployed on the embedded AWS."""
