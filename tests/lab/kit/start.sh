#!/bin/sh
# Runs in the guest, as root, once it is up: installs the package as a user has it, then does what was ordered.
# The host believes only the last line printed here, together with the results on /dev/vdc.
set -u
cd /lab || exit 1
read -r word <word
mkdir -p /results
export NO_COLOR=1 SYSTEMD_COLORS=0 SYSTEMD_PAGER= LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1

say() { echo "lab: $(cut -d' ' -f1 /proc/uptime) s  $*"; }

# copy FOLDER PATTERN TARGET: put the files that exist where a package would put them.
copy() {
	for file in "$1"/$2; do
		[ -e "$file" ] || continue
		mkdir -p "$3" && cp -- "$file" "$3/"
	done
}

install() {
	# With this layout pip puts files where a Debian package would: /usr/bin and /usr/lib/python3/dist-packages.
	DEB_PYTHON_INSTALL_LAYOUT=deb python3 -m pip --quiet --disable-pip-version-check install --no-deps --no-index \
		--break-system-packages --root-user-action=ignore wheel/*.whl || return 1
	copy systemd '*.service' /usr/lib/systemd/system
	copy systemd '*.path' /usr/lib/systemd/system
	copy systemd '*.socket' /usr/lib/systemd/system
	copy systemd '*.timer' /usr/lib/systemd/system
	copy systemd '*.preset' /usr/lib/systemd/system-preset
	copy systemd '*.catalog' /usr/lib/systemd/catalog
	copy systemd '*sysusers*.conf' /usr/lib/sysusers.d
	copy systemd '*tmpfiles*.conf' /usr/lib/tmpfiles.d
	copy docs/man '*.5' /usr/share/man/man5
	copy docs/man '*.1' /usr/share/man/man1
	copy docs/man '*.8' /usr/share/man/man8
	copy docs/completion '*.bash' /usr/share/bash-completion/completions
	journalctl --update-catalog
	systemctl daemon-reload
}

ordered() {
	if [ "$(cat mode)" = shell ]; then
		stty sane
		echo "lab: a root shell in $(uname -r); the project is in /lab; 'exit' ends the guest"
		TERM=linux setsid -c -w bash -l
		return
	fi
	if [ "$(cat mode)" = module ]; then
		read -r module <arguments
		python3 -m "$module"
		return
	fi
	set --
	while read -r argument; do set -- "$@" "$argument"; done <arguments
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
