"""The HTTP interface: Flink's routes, our additions under /headwater, and the one client of both."""
