"""What the service knows, as frozen values; `render/` turns them into Flink's JSON."""
