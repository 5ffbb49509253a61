#!/bin/sh
# In a fresh minimal Debian, as root: install from a repository by the commands of docs/install.md, and see
# others refused:  apt.sh ADDRESS REPOSITORY=MESSAGE...
set -eu
. "$(dirname "$0")/common.sh"
address=$1
shift
list=/etc/apt/sources.list.d/nfstuned.list
only="-oDir::Etc::SourceList=$list -oDir::Etc::SourceParts=/dev/null"

sudo() { "$@"; }

commands() {
	sudo /usr/lib/apt/apt-helper download-file "$REPOSITORY/nfstuned.asc" /etc/apt/keyrings/nfstuned.asc
	echo "deb [signed-by=/etc/apt/keyrings/nfstuned.asc] $REPOSITORY/apt stable main" | sudo tee $list
	sudo apt-get update && sudo apt-get install nfstuned
}

# Succeed where apt takes the package of a repository.
takes() {
	echo "deb [signed-by=/etc/apt/keyrings/nfstuned.asc] $address/$1/apt stable main" >$list
	rm -rf /var/lib/apt/lists/* ./*.deb
	# shellcheck disable=SC2086  # two words
	{ apt-get $only update --error-on=any && apt-get $only download nfstuned; } >/tmp/said 2>&1
}

echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes
REPOSITORY=$address/own
start=$(date +%s)
quietly commands
echo "apt $(dpkg-query -W -f '${Version}' apt): the three commands took $(($(date +%s) - start)) s"
nfstuned --version
quietly nfstuned check
[ -e /etc/systemd/system/multi-user.target.wants/nfstuned.service ] || fail "the service is not enabled"
cd "$top"
takes own || fail "the repository itself is refused: $(cat /tmp/said)"
for each; do
	name=${each%%=*} message=${each#*=}
	! takes "$name" || fail "the repository $name is accepted"
	grep -Eq "$message" /tmp/said || fail "$name is refused, but not for '$message': $(cat /tmp/said)"
	echo "refused: $name: $(grep -Em1 "$message" /tmp/said | cut -c 1-160)"
done
