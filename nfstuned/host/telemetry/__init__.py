"""What is recorded, and read back: the journal, the file of samples, metrics."""
