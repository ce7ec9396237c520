"""Programs: what is uploaded, the packages it needs, and the graph it becomes."""
