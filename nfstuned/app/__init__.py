"""The use cases without a terminal: a host's state, joined with its policy."""
