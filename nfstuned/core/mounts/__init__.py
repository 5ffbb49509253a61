"""Mounts, and the meaning of their options."""
