"""Where tasks run: the sans-I/O task, its channels, and the worker process around it."""
