"""Steps that several kinds of operations share."""
