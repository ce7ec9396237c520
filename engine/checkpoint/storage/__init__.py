"""Storage: where the folder of a snapshot lies, written so that a crash leaves no half file."""
