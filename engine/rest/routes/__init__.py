"""One file per topic: parse the request, ask the service, render the answer."""
