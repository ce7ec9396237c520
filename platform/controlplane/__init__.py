"""The control plane: Django apps that run and watch jobs on engines.

access  audit  backends  operations  jobs  snapshots  replay     what is kept and done
live  collector  metrics  alerts  supervisor                     what is watched and carried
api  client                                                      for programs: API, command line
"""
