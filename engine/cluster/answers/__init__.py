"""What REST asks of the job manager: views, figures, looks at snapshots."""
