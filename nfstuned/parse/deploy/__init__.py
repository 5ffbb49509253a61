"""Files with which people deploy: manifests, compose files, playbooks, plans and scripts."""
