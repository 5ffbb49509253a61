#!/bin/sh
# The mkosi recipe: the disk, and what the script inside left in its file system.
set -eu
apt-get update -qq
apt-get install -qq -y --no-install-recommends mkosi apt systemd-repart systemd-boot systemd-ukify reprepro dosfstools \
	e2fsprogs mtools cpio zstd debian-archive-keyring ca-certificates fdisk >/dev/null
mkosi --version
cd images/mkosi
mkdir -p mkosi.packages mkosi.extra/etc/nfstuned
cp /root/nfstuned.deb mkosi.packages/nfstuned_0.2.0-1_amd64.deb
cp ../nfstuned.toml mkosi.extra/etc/nfstuned
echo '10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev 0 0' >mkosi.extra/etc/fstab
mkosi summary | grep -E 'Distribution:|Release:|Output Format:|^ *Package Directories:|Postinstall'
# The machine's mirror alone: not every one has the archives for debugging and security that mkosi adds.
mirror=$(sed -n 's/^deb .*\(http[^ ]*\) trixie main$/\1/p' /etc/apt/sources.list | head -n 1)
mkosi --local-mirror="$mirror" build >/tmp/said 2>&1 || {
	tail -n 100 /tmp/said
	exit 1
}
grep -A 8 'Running postinstall script' /tmp/said
sfdisk --list image.raw
python3 - <<'PYTHON' >/tmp/root
import json, subprocess
table = json.loads(subprocess.check_output(["sfdisk", "--json", "image.raw"]))["partitiontable"]
(start,) = [one["start"] for one in table["partitions"] if one["name"].startswith("root")]
print(f"image.raw?offset={start * table['sectorsize']}")
PYTHON
root=$(cat /tmp/root)
debugfs -R 'cat /etc/nfsmount.conf.d/50-nfstuned.conf' "$root" 2>/dev/null | grep -A 1 'Server "10.1.2.4"'
debugfs -R 'stat /etc/systemd/system/multi-user.target.wants/nfstuned.service' "$root" 2>/dev/null | grep 'Fast link dest'
