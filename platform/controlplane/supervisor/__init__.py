"""The whole platform on one machine: `manage.py up`."""
