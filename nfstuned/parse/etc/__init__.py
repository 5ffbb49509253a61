"""Files that people write: fstab, units, maps, and the settings of other programs."""
