"""The parts of the conformance suite of state backends, by kind of state."""
