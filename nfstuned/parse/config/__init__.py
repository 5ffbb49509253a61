"""nfstuned's own configuration, from TOML to a policy."""
