"""Changes of a host: read-aheads, mounts, connections, masks of udev's rules."""
