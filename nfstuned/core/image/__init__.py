"""The files of an image for its first boot."""
