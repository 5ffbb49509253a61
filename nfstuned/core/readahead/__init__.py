"""The read-ahead of superblocks: its plan, its other writers, and the evidence of its worth."""
