"""`headwater --control URL …`: the command line of the control plane, over its public API.

Needs    no Django and nothing else of the control plane: it may run anywhere.
"""

from controlplane.client.program import main

__all__ = ["main"]
