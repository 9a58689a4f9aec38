"""Config: the typed root, checks before anything starts, the identity of a cell, config -> objects."""
