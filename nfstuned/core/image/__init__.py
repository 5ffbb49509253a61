"""What an image should have for its first boot."""
