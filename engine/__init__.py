"""Headwater's engine: stateful stream processing with event time and exactly-once snapshots."""
