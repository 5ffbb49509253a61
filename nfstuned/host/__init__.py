"""The only place with I/O: reads and writes below a root, udev, the journal, the service manager."""
