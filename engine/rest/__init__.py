"""The Flink-shaped HTTP API, and the one client of it."""
