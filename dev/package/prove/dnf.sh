#!/bin/sh
# In a fresh Debian with rpm, dnf and zypper, as root: install from a repository by the commands of
# docs/install.md, and see others refused:  dnf.sh ADDRESS REPOSITORY=MESSAGE-OF-DNF=MESSAGE-OF-ZYPPER...
# As in rpm.sh, stand-ins have the requirements of the package.
# shellcheck disable=SC2032,SC2033  # sudo is a function here
set -eu
. "$(dirname "$0")/common.sh"
address=$1
shift
list=/etc/yum.repos.d/nfstuned.repo

sudo() { "$@"; }

for_dnf() {
	for line in '[nfstuned]' name=nfstuned "baseurl=$REPOSITORY/rpm" gpgcheck=1 repo_gpgcheck=1 \
		"gpgkey=$REPOSITORY/nfstuned.asc"; do echo "$line"; done | sudo tee $list
	sudo dnf install nfstuned
}

for_zypper() {
	sudo rpm --import "$REPOSITORY/nfstuned.asc"
	sudo zypper addrepo --gpgcheck-strict "$REPOSITORY/rpm" nfstuned
	sudo zypper install nfstuned
}
zypper() { command zypper --non-interactive "$@"; }

# Install from a repository, which must work.
install_by() {
	start=$(date +%s)
	quietly "for_$1"
	echo "$1 $2: the commands took $(($(date +%s) - start)) s"
	nfstuned --version
	quietly nfstuned check
	quietly rpm --verify nfstuned
	quietly rpm -e nfstuned
}

# Try to install from a repository, which must not work, for the reason of a message.
refused() {
	tool=$1 name=$2 message=$3
	REPOSITORY=$address/$name
	! "for_$tool" >/tmp/said 2>&1 || fail "$tool accepts the repository $name: $(cat /tmp/said)"
	! rpm -q nfstuned >/dev/null || fail "$tool has installed from the repository $name"
	grep -Eq "$message" /tmp/said || fail "$tool refuses $name, but not for '$message': $(cat /tmp/said)"
	echo "refused by $tool: $name: $(grep -Em1 "$message" /tmp/said | cut -c 1-160)"
}

like_rhel
stand_in python-new "$(readlink -f /usr/bin/python3)"
quietly createrepo_c "$top/repository"
mkdir -p /etc/yum.repos.d
printf '[stand-ins]\nname=stand-ins\nbaseurl=file://%s\ngpgcheck=0\n' "$top/repository" >/etc/yum.repos.d/own.repo
printf '[main]\nassumeyes=1\ngpgcheck=1\nclean_requirements_on_remove=0\nkeepcache=0\n' >/etc/dnf/dnf.conf
REPOSITORY=$address/own
install_by dnf "$(dnf --version | head -n 1)"
for each; do
	rm -rf /var/cache/dnf
	rest=${each#*=}
	refused dnf "${each%%=*}" "${rest%%=*}"
done
REPOSITORY=$address/own
quietly zypper addrepo --no-gpgcheck "$top/repository" stand-ins
install_by zypper "$(zypper --version)"
for each; do
	quietly zypper removerepo nfstuned
	quietly zypper clean --all
	refused zypper "${each%%=*}" "${each##*=}"
done
