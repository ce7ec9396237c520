"""Operators on columns: each row by itself, whole frames at once."""
