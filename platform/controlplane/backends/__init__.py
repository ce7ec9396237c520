"""Engines, each behind one interface: nothing else of the control plane speaks to one."""
