"""Repeatable measurements; `python -m benchmarks` runs them."""
