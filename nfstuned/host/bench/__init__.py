"""A folder on a mount to measure in, fio, the mount's read-ahead, and that all is put back."""
