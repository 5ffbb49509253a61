"""Text to values, one module a kernel file; nothing here reads a file itself."""
