"""What a host or an image has: nothing here changes it, and nothing touches a mount."""
