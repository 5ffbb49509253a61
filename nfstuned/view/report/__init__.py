"""The report: one HTML page about what mounts delivered."""
