"""Whose server a mount uses, and which profile it gets."""
