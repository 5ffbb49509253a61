"""What mounts ask for, and what their options mean."""
