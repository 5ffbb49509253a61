"""The effects of udev's rules on a device."""
