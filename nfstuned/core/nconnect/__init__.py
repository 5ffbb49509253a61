"""The connections of mounts: who shares them, their right number, and the ways to change it."""
