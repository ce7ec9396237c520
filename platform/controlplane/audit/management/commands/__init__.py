"""Commands for `manage.py`, one a file."""
