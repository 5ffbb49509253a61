"""The only place with I/O: reads and writes below one root, udev, the journal, the service manager."""
