"""Old output against new: row by row, key by key, within windows that both have closed."""
