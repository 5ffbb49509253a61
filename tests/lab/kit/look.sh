#!/bin/sh
# look FOLDER: keep the kernel's files about the NFS mounts. A part of the systems that tests/lab/rootdisk.py makes.
set -eu
mkdir -p "$1"
cut -d' ' -f1 /proc/uptime >"$1/uptime"
cat /proc/self/mountinfo >"$1/mountinfo"
cat /proc/self/mountstats >"$1/mountstats"
for bdi in /sys/class/bdi/0:*; do
	echo "${bdi##*/} $(cat "$bdi/read_ahead_kb")"
done >"$1/read_ahead_kb"
