"""The process that watches engines."""
