"""The world beyond files: names, ports, routes, Azure, NFS servers."""
