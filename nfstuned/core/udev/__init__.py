"""What udev's rules do to a device."""
