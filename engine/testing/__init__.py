"""Public test tools: operator harness, conformance suites, seeded simulation."""
