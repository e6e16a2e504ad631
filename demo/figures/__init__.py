"""Figures that anybody may measure again: each module prints one, of the app deployed on the embedded AWS."""
