"""The public HTTP API below `/api/v1/`: what pages do, for programs, by the same actions."""
