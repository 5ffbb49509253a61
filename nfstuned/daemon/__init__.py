"""The service: tunes every NFS mount as it appears, and records its throughput."""
