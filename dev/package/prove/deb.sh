#!/bin/sh
# In a fresh minimal Debian, as root: install, use, upgrade, remove and purge the package:  deb.sh OLD.deb NEW.deb
set -eu
. "$(dirname "$0")/common.sh"
old=$1
new=$2
version=$(dpkg-deb -f "$old" Version)

# What is installed, but for what apt, dpkg and systemd note of every package.
listing() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var/cache \
		-o -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/systemd/catalog \) -prune \
		-o -name __pycache__ -path '/usr/lib/python3*' -prune \
		-o \( -type f -exec sha256sum {} + \) -o \( ! -type f -printf '%y %p %l\n' \) | sort
}

# Print how long commands take in the middle of 15 times, in ms, beside Python doing nothing.
how_long() {
	python3 - <<-'PYTHON'
		import statistics, subprocess, time
		def ms(*command):
		    taken = []
		    for _ in range(15):
		        start = time.perf_counter()
		        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
		        taken.append((time.perf_counter() - start) * 1000)
		    return statistics.median(taken)
		nothing, check = ms("python3", "-c", "pass"), ms("nfstuned", "check")
		print(f"nfstuned check: {check:.0f} ms, {check / nothing:.1f} times python3 -c pass ({nothing:.0f} ms)")
	PYTHON
}

# This system prepared as an image is, with the udev rule that the package carries for that; and taken back.
bakes() {
	listing >/tmp/unbaked
	quietly nfstuned bake
	quietly nfstuned bake --daemonless
	[ -e /etc/udev/rules.d/99-nfstuned.rules ] || fail "nfstuned bake --daemonless wrote no rule"
	quietly nfstuned bake --undo
	listing | diff /tmp/unbaked - || fail "nfstuned bake --undo left what is shown above"
}

works() {
	compiled=$(find /usr/lib/nfstuned -name '*.pyc' | wc -l)
	[ "$compiled" -gt 500 ] || fail "$compiled files are compiled"
	[ "$(nfstuned --version)" = "nfstuned ${version%-*}" ] || fail "nfstuned --version"
	quietly nfstuned check
	quietly nfstuned config show
	quietly nfstuned rules
	[ -n "$(nfstuned explain NFS101)" ] || fail "nfstuned explain"
	quietly dpkg --verify nfstuned
	[ -e /etc/systemd/system/multi-user.target.wants/nfstuned.service ] || fail "the service is not enabled"
	bakes
	quietly nfstuned status
	quietly nfstuned config schema
	# Root's commands compile what is not: what a user without rights runs cannot be written.
	now=$(find /usr/lib/nfstuned -name '*.pyc' | wc -l)
	[ "$now" = "$compiled" ] || fail "commands have compiled $((now - compiled)) files"
}

cycle() {
	listing >/tmp/before
	quietly dpkg -i "$old"
	works
	how_long
	quietly dpkg -i "$new"
	works
	[ "$(dpkg-query -W -f '${Version}' nfstuned)" = "$(dpkg-deb -f "$new" Version)" ] || fail "the upgrade"
	"$@"
	mkdir -p /etc/nfstuned
	echo '# of the administrator' >/etc/nfstuned/nfstuned.toml
	quietly dpkg -r nfstuned
	[ -e /etc/nfstuned/nfstuned.toml ] || fail "remove took the configuration"
	[ ! -e /usr/lib/nfstuned ] || fail "remove left /usr/lib/nfstuned"
	quietly dpkg -P nfstuned
	listing >/tmp/after
	diff /tmp/before /tmp/after || fail "purge left what is shown above"
	echo "installed, upgraded, removed and purged: nothing is left"
}

# An administrator's choice, and what systemd says of the files.
with_systemd() {
	[ "$(systemctl is-enabled nfstuned)" = enabled ] || fail "systemd does not see it enabled"
	[ "$(journalctl --list-catalog | grep -c nfstuned)" -gt 10 ] || fail "the catalog is not in the journal's"
	quietly systemd-analyze verify --man=no /usr/lib/systemd/system/nfstuned.service
	quietly systemctl disable nfstuned
	quietly dpkg -i "$old"
	quietly dpkg -i "$new"
	[ "$(systemctl is-enabled nfstuned)" = disabled ] || fail "an upgrade enables what was disabled"
}

quietly apt-get update
[ "$(command -v cc gcc c99)" = "" ] || fail "this is no installation without a compiler"
quietly apt-get install -y --no-install-recommends "$old"
quietly dpkg -P nfstuned
cycle true
quietly apt-get install -y --no-install-recommends systemd
cycle with_systemd
