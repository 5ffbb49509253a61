#!/bin/sh
# Run a container image, in namespaces for this script alone:  image.sh ARCHIVE VERSION
# amd64 runs by podman and runc, arm64 by QEMU's user mode: proot gives it the root, and its programs each other.
set -eu
archive=$1 version=$2
# Debian 13 has the second name.
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
mount -t tmpfs tmpfs /run
export TMPDIR=/run CONTAINERS_CONF=/run/containers.conf
cat >"$CONTAINERS_CONF" <<'CONF'
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
# Not every root may raise its limits.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
CONF

engine() { podman --root /run/store --runroot /run/state --log-level error "$@"; }
start() { engine run --cgroup-parent /nfstuned-image --network none "$@"; }
fail() {
	echo "$*" >&2
	exit 1
}
finish() {
	engine rm --force --all >/dev/null
	find /sys/fs/cgroup -depth -type d -path '*/nfstuned-image*' -exec rmdir {} +
}
trap finish EXIT

# Every compiled module loads with the libraries of the image, and ctypes finds libudev by ldconfig's cache.
cat >/run/modules.py <<'PYTHON'
import importlib, pathlib, sys
vendor = "/usr/lib/nfstuned/vendor"
sys.path.insert(0, vendor)
count = 0
for home in ("/usr/lib/python3.13/lib-dynload", vendor):
    for path in pathlib.Path(home).rglob("*.so"):
        folders = path.relative_to(home).parts[:-1]
        importlib.import_module(".".join([*folders, path.name.partition(".")[0]]))
        count += 1
import pyudev
pyudev.Context()
print(count, "compiled modules load, and pyudev finds libudev")
PYTHON
mkdir -p /run/host/etc
echo 'nas.example.com:/data /data nfs nconnect=99 0 0' >/run/host/etc/fstab

# Run a program of the image.
inside() {
	program=$1
	shift
	case $architecture in
	amd64) start --rm --interactive --read-only --volume /run/host:/host:ro --entrypoint "$program" "$image" "$@" ;;
	arm64) proot -q "$emulator" -r "$root" -b /dev -b /sys -w / "/usr/bin/$program" "$@" ;;
	esac
}
# Run it, and demand a text of its output.
expect() {
	text=$1
	shift
	output=$(inside "$@" 2>&1) || true
	case $output in
	*"$text"*) echo "$architecture: $(printf '%s\n' "$output" | grep -F -m 1 "$text")" ;;
	*) fail "$architecture: $* did not print '$text': $output" ;;
	esac
}

for architecture in arm64 amd64; do
	root=/run/$architecture
	mkdir "$root"
	image=$(engine pull --quiet --arch "$architecture" "oci-archive:$archive")
	container=$(engine create --cgroup-parent /nfstuned-image --network none --arch "$architecture" "$image")
	engine export "$container" | tar -x -C "$root"
	programs=$(find "$root/usr" -type f -perm /111 ! -name '*.so*' ! -path '*/lib/python3.13/*' -printf '%P\n' | sort)
	[ "$programs" = "$(printf '%s\n' bin/python3.13 lib/nfstuned/__main__.py sbin/ldconfig)" ] ||
		fail "$architecture: other programs than expected: $programs"
	links=$(find "$root" -xtype l)
	[ -z "$links" ] || fail "$architecture: links to nowhere: $links"
	expect "nfstuned $version" nfstuned --version
	if [ "$architecture" = arm64 ]; then
		# proot does not translate the path of each system call.
		cp /run/host/etc/fstab "$root/etc"
		expect NFS309 nfstuned check --root /
	else
		expect NFS309 nfstuned check --root /host
	fi
	expect "compiled modules load" python3 - </run/modules.py
done
if start --rm --entrypoint /bin/sh "$image" -c true 2>/run/refused; then fail "the image has a shell"; fi
grep -q "no such file" /run/refused || fail "$(cat /run/refused)"

# As the DaemonSet, but for its mode: no mount of this machine changes.
mkdir /run/etc /run/node /run/udev /run/journal
printf '[daemon]\nmode = "observe"\n' >/run/etc/nfstuned.toml
touch /run/udev/control
container=$(engine run --detach --cgroup-parent /nfstuned-image --privileged --pid host --network host --read-only \
	--volume /run/etc:/etc/nfstuned:ro --volume /run/node:/run/nfstuned \
	--volume /run/udev:/run/udev:ro --volume /run/journal:/run/systemd/journal:ro "$image")
for _ in $(seq 60); do
	engine logs "$container" >/run/log 2>&1
	! grep -q configuration /run/log || break
	sleep 0.5
done
engine exec "$container" nfstuned status
groups=$(awk '$2 == 15 { printf " %s", $4 }' /proc/net/netlink)
engine stop --time 10 "$container" >/dev/null
engine logs "$container" 2>&1 | tee /run/log
grep -q '>stopped$' /run/log || fail "SIGTERM did not stop the service"
status=$(engine inspect --format '{{.State.ExitCode}}' "$container")
[ "$status" = 0 ] || fail "the service ended with $status"
# 1 is the kernel's group, 2 is udev's.
case $groups in
*2*) ;;
*) fail "the service does not hear udev: groups$groups" ;;
esac
