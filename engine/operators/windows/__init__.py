"""Aggregates over windows of event time, before and after the shuffle."""
