"""The kernel's files in /proc and /sys."""
