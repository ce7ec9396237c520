"""Logical jobs, their versions (artifacts) and their runs on engines."""
