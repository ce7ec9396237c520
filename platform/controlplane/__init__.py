"""The control plane: Django apps that run and watch jobs on engines.

access  audit  backends  operations  jobs  snapshots  replay     what is kept and done
live  collector  metrics  supervisor                             what is watched and carried
"""
