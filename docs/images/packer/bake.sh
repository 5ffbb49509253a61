#!/bin/sh
# In the machine that becomes the image: install nfstuned, let it prepare the system, and check that.
# /tmp/nfstuned.deb and /tmp/nfstuned.toml are there.
set -eu

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends nfs-common /tmp/nfstuned.deb
rm /tmp/nfstuned.deb

install -D -m 0644 /tmp/nfstuned.toml /etc/nfstuned/nfstuned.toml
rm /tmp/nfstuned.toml
nfstuned config check

nfstuned bake
nfstuned check --root / --fail-on error
