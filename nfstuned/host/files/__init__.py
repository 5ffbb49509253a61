"""Files that are put in their place as a whole or not at all."""
