"""The service: tunes every NFS mount as it appears, and records what each then delivers."""
