"""Frozen values: the kernel's facts, administrators' requests, and changes."""
