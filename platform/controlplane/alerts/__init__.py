"""Alerts: rules over what is known of jobs, what they found, and who is told."""
