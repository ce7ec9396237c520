"""The HTTP interface: Flink's routes, our additions under /headwater, and one client of both."""
