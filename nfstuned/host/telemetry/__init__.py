"""Records, written and read back: the journal, the file of samples, metrics."""
