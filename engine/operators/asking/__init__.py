"""Asynchronous enrichment: requests beside the subtask, and rows in flight."""
