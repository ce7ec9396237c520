"""What flows through a job: the logical graph, the job graph of chained vertices, and its plan."""
