"""One script per peer; each runs in a virtual environment of its own."""
