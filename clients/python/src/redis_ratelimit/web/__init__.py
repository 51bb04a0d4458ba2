"""One file per web framework."""
