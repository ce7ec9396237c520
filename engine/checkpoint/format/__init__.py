"""The format: a manifest and Parquet files, whole or in layers, and their writer."""
