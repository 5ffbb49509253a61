"""udev rules, read as systemd-udevd reads them."""
