"""Restoring: whether a snapshot fits a job, and what each subtask starts from."""
