"""The use cases: what the host is, joined with what should be, without a terminal."""
