"""The operators, one file each, against `contract.py`."""
