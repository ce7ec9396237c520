"""The snapshots of one job: what the coordinator decides is done, logged and deleted here."""
