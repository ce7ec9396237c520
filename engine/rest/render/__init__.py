"""From the engine's values to Flink's JSON: pure functions, one file per topic."""
