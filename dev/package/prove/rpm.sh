#!/bin/sh
# In a fresh Debian with rpm and dnf, as root: install, use, upgrade and remove the package:  rpm.sh OLD.rpm NEW.rpm
# RHEL and SLES are not at hand. So dnf resolves against a repository of stand-ins that have what the package
# requires, and the interpreter is Debian's.
set -eu
. "$(dirname "$0")/common.sh"
old=$1
new=$2

listing() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var \
		-o -path /etc/dnf -o -path /root \) -prune \
		-o -name __pycache__ -path '/usr/lib/python3*' -prune \
		-o \( -type f -exec sha256sum {} + \) -o \( ! -type f -printf '%y %p %l\n' \) | sort
}

works() {
	quietly nfstuned --version
	quietly nfstuned check
	[ "$(find /usr/lib/nfstuned -name '*.pyc' | wc -l)" -gt 500 ] || fail "nothing is compiled"
}

python=$(readlink -f /usr/bin/python3)
# Nothing but the repository here, and what a package brought stays when that goes: it is Debian's own.
try_dnf() {
	dnf -y --refresh --disablerepo='*' --repofrompath="here,file://$top/repository" --nogpgcheck \
		--setopt=clean_requirements_on_remove=0 "$@"
}

like_rhel
stand_in python3 "" "python3 = 3.9"
quietly createrepo_c "$top/repository"
cp "$old" "$top/old.rpm"
if try_dnf install "$top/old.rpm" >/tmp/said 2>&1; then
	fail "it installs without an interpreter"
fi
grep -q /usr/bin/python3.12 /tmp/said || fail "dnf does not say what is missing: $(cat /tmp/said)"

stand_in python-new "$python"
quietly createrepo_c "$top/repository"
listing >/tmp/before
quietly try_dnf install "$top/old.rpm"
rpm -q python-new >/dev/null || fail "dnf took no interpreter"
works
quietly rpm --verify nfstuned
rm -r /usr/lib/nfstuned/nfstuned/__pycache__
quietly try_dnf reinstall "$top"/repository/*/base-1-1.*.rpm
[ ! -d /usr/lib/nfstuned/nfstuned/__pycache__ ] || fail "any package makes it compile"
quietly try_dnf reinstall "$top/repository"/*/python-new-1-1.*.rpm
[ -d /usr/lib/nfstuned/nfstuned/__pycache__ ] || fail "another interpreter is not compiled for"
cp "$new" "$top/new.rpm"
quietly try_dnf install "$top/new.rpm"
works
quietly try_dnf remove nfstuned
[ ! -e /usr/lib/nfstuned ] || fail "it left /usr/lib/nfstuned: $(find /usr/lib/nfstuned)"
listing >/tmp/after
diff /tmp/before /tmp/after || fail "its removal left what is shown above"
echo "installed with dnf, upgraded and removed: nothing is left"
