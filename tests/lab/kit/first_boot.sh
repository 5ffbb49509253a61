#!/bin/sh
# Runs in a system of tests/lab/rootdisk.py that has booted, as root: keeps the values in effect, with a load on each mount.
# The host believes only the last line printed here, together with the results on /dev/vdc.
set -u
cd /lab || exit 1
read -r word <word
mkdir -p /results
export NO_COLOR=1 SYSTEMD_COLORS=0 SYSTEMD_PAGER= LC_ALL=C.UTF-8

say() { echo "lab: $(cut -d' ' -f1 /proc/uptime) s  $*"; }

# shown UNIT PROPERTY...: of a unit, one line a property.
shown() {
	unit=$1
	shift
	for property; do systemctl show --property="$property" "$unit"; done >"/results/$unit"
}

# as_expected: whether each mount has the read-ahead that the payload names.
as_expected() {
	while read -r point kb; do
		device=$(awk -v point="$point" '$5 == point { print $3 }' /results/idle/mountinfo)
		grep -qx "$device $kb" /results/idle/read_ahead_kb || return 1
	done <expected
}

say "$(uname -r) is up"
status=0
if [ -s command ]; then
	sh -eu command >/results/command.json || status=1
	say "it ran: $(cat command)"
fi
# Whoever else writes read-aheads does so by udev; the service then needs a moment, of an emulated processor.
udevadm settle
for _ in $(seq 60); do
	sh look /results/idle
	as_expected && break
	sleep 1
done
say "read-aheads: $(tr '\n' ' ' </results/idle/read_ahead_kb)"
# Each file costs some requests, one after the other: they go round the connections.
awk '/ - nfs4? / { print $5 }' /proc/self/mountinfo >/results/points
while read -r point; do
	for number in $(seq 20); do
		echo "$number" >"$point/load-$number" || status=1
	done
done </results/points
sh look /results/loaded
say "it had its load"
shown nfstuned.service ActiveState SubState ActiveEnterTimestampMonotonic
shown systemd-user-sessions.service ActiveState ActiveEnterTimestampMonotonic
shown nfstuned-identity.service ActiveState ActiveEnterTimestampMonotonic
shown mnt-share.mount ActiveState InactiveExitTimestampMonotonic ActiveEnterTimestampMonotonic
who >/results/who
systemctl list-units --plain --no-legend 'getty@*' 'serial-getty@*' >/results/prompts
systemctl list-units --plain --no-legend --failed >/results/failed
cat /etc/machine-id >/results/machine-id
cat /sys/fs/nfs/net/nfs_client/identifier >/results/identifier
cat /sys/module/sunrpc/parameters/tcp_max_slot_table_entries >/results/slots
cp -R /run/lab/. /results/
if command -v nfstuned >/dev/null; then
	nfstuned status --format json >/results/status.json || status=1
fi
journalctl -b -u nfstuned.service -o json >/results/service.journal
journalctl -b -o short-monotonic >/results/journal.txt
say "it was looked at"
tar -C /results -cf /dev/vdc . || status=98
rm -r /results
sync
echo "@@lab-end $word $status"
# Changing a terminal's mode waits until it has sent everything; the power goes off right after this script.
stty -echo
