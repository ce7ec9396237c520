"""Job manager and task managers: the service that runs many jobs on one machine."""
