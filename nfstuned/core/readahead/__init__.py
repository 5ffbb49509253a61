"""The read-ahead of superblocks: what it should be, who else writes it, what it is worth."""
