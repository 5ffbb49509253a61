"""Frozen values: what the kernel says, what the administrator wants, what is to be done."""
