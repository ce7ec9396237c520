"""What the client hands out: typed values, read from the JSON of our engine or of Flink."""
