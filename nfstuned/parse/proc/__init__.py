"""What the kernel says, in /proc and /sys."""
