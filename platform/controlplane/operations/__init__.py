"""Every long action as a persisted, resumable, idempotent saga."""
