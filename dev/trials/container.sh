#!/bin/sh
# The container image of the AKS recipe, by buildah, and the service in it as the DaemonSet starts it.
set -eu
apt-get update -qq
apt-get install -qq -y --no-install-recommends buildah mmdebstrap debian-archive-keyring netavark crun python3 >/dev/null
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah --version
# Not the limits that buildah asks for by itself: not every root may raise its own.
mkdir -p /etc/containers
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n' >/etc/containers/containers.conf

# Instead of asking a registry: what debian:13-slim is made of, under its name.
mirror=$(sed -n 's/^deb .*\(http[^ ]*\) trixie main$/\1/p' /etc/apt/sources.list | head -n 1)
mmdebstrap --quiet --variant=minbase trixie base.tar "$mirror"
base=$(buildah from scratch)
buildah add -q "$base" base.tar /
buildah commit -q "$base" docker.io/library/debian:13-slim
rm base.tar

# The build script, in a checkout whose dev/build has been run already.
mkdir -p checkout/docs/images checkout/dev checkout/dist
cp -r images/aks checkout/docs/images
cp nfstuned.deb checkout/dist/nfstuned_0.1.0-1_amd64.deb
echo "echo /root/checkout/dist/nfstuned_0.1.0-1_amd64.deb: $(stat --format=%s nfstuned.deb) bytes" >checkout/dev/build
ENGINE=buildah sh checkout/docs/images/aks/build.sh registry.example.com/nfstuned:0.1.0 >/tmp/said 2>&1 || {
	cat /tmp/said
	exit 1
}
tail -n 1 /tmp/said
buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint}}{{"\n"}}' registry.example.com/nfstuned:0.1.0
image=$(buildah mount "$(buildah from --pull-never registry.example.com/nfstuned:0.1.0)")
du -sh "$image" | cut -f 1

# The pod: the root is read-only, /sys is not, and the node's processes and network are its own.
python3 - <<'PYTHON' >/run/policy.toml
import re
text = open("images/aks/daemonset.yaml").read()
block = re.search(r"nfstuned.toml: \|\n((?:    .*\n|\n)+)", text).group(1)
print(re.sub(r"^    ", "", block, flags=re.M))
PYTHON
cat >/run/exec <<'EXEC'
exec nsenter --target "$1" --mount --net --root --wd sh -c "$2"
EXEC
cat >/run/pod <<'POD'
cd "$1"
mkdir -p etc/nfstuned run/nfstuned run/udev run/systemd/journal
mount --bind . .
cd "$1"
mount -o remount,bind,ro .
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
mknod dev/null c 1 3
mknod dev/urandom c 1 9
mount -t tmpfs tmpfs run/nfstuned
mount -t tmpfs tmpfs etc/nfstuned
cp /run/policy.toml etc/nfstuned/nfstuned.toml
mount -o remount,ro etc/nfstuned
[ -z "$2" ] || mount --bind "$2" run/udev
exec chroot . /usr/bin/nfstuned daemon
POD

# Start a pod, print the groups of uevents that it hears (1: the kernel's, 2: udev's), use it, and stop it.
pod() {
	unshare --mount --net --propagation private sh -eu /run/pod "$image" "$1" >/run/said 2>&1 &
	service=$!
	sleep 15
	awk '$2 == 15 { groups = groups " " $4 } END { print "groups:" groups }' "/proc/$service/net/netlink"
	sh /run/exec "$service" 'nfstuned --version && nfstuned config check && nfstuned status && nfstuned undo'
	if sh /run/exec "$service" 'touch /tmp/written' 2>/run/refused; then exit 1; fi
	cat /run/refused
	kill -TERM "$service"
	wait "$service" || echo "exit status $?"
	cat /run/said
}

mkdir -p /run/node-udev
touch /run/node-udev/control
echo "Without the node's /run/udev:"
pod ""
echo "As in the manifest:"
pod /run/node-udev >/run/heard
cat /run/heard
grep -q '00000002' /run/heard
