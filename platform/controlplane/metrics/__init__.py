"""Series: the embedded store, and the endpoint that takes line protocol."""
