"""Counters to rates and totals, and many samples to a few numbers."""
