"""The same work on other stream processors, beside ours; `python -m benchmarks.peers` runs it."""
