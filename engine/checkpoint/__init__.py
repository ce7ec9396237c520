"""Barrier snapshots: alignment, coordinator, storage, savepoints, restore."""
