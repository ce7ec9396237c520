"""Processes: task managers and workers, their slots, and what they leave behind."""
