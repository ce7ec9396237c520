"""Settings of jobs and of the cluster, under Flink's names: text in, checked values out."""
