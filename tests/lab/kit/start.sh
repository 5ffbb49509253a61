#!/bin/sh
# Runs in the guest, as root, once it is up: installs the package as a user has it, then carries out the order.
# The host believes only the last line printed here, together with the results on /dev/vdc.
set -u
cd /lab || exit 1
read -r word <word
rm -rf /results && mkdir /results
export NO_COLOR=1 SYSTEMD_COLORS=0 SYSTEMD_PAGER= LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1

# This link starts the service at a boot. On a disk that was made for many boots it is aside until each of them is up.
WANTED=/etc/systemd/system/multi-user.target.wants/nfstuned.service
ASIDE=/var/lib/nfstuned.service.wanted

say() { echo "lab: $(cut -d' ' -f1 /proc/uptime) s  $*"; }

# Install the package as a user does, but start nothing, as where an image is built: scenarios start the service.
# The disk's changes are gone with the boot, or all of them are written in its end: none need be waited for.
install() {
	if [ -L "$ASIDE" ]; then
		mv "$ASIDE" "$WANTED" && systemctl daemon-reload
		return
	fi
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
	dpkg --force-unsafe-io --install package/*.deb >/results/dpkg.txt 2>&1 || {
		cat /results/dpkg.txt
		return 1
	}
	rm /usr/sbin/policy-rc.d
}

ordered() {
	if [ "$(cat mode)" = shell ]; then
		stty sane
		echo "lab: a root shell in $(uname -r); the project is in /lab; 'exit' ends the guest"
		TERM=linux setsid -c -w bash -l
		return
	fi
	if [ "$(cat mode)" = install ]; then
		mv "$WANTED" "$ASIDE"
		return
	fi
	set --
	while read -r argument; do set -- "$@" "$argument"; done <arguments
	if [ "$(cat mode)" = module ]; then
		PYTHONPATH=/usr/lib/nfstuned:/usr/lib/nfstuned/vendor python3 -m "$@"
		return
	fi
	python3 -m pytest --junitxml=/results/junit.xml "$@"
}

ip link set lo up
say "$(uname -r) is up"
if install; then
	say "nfstuned is installed"
	ordered
	status=$?
else
	status=99
fi
journalctl -b -o short-monotonic >/results/journal.txt 2>/dev/null
tar -C /results -cf /dev/vdc . || status=98
sync
echo "@@lab-end $word $status"
# Changing a terminal's mode waits until it has sent everything; the power goes off right after this script.
stty -echo
