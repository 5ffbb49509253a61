"""The connections of mounts: who shares them, what they should be, what is against a change."""
