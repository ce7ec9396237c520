"""The outputs of a job and of its replay: where they are, what is in them, and their exchange."""
