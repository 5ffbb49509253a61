"""The HTML pages of `nfstuned report` and `nfstuned bench`."""
