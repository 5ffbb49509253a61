"""Text to values, a module for each kind of file; nothing here reads a file itself."""
