#!/bin/sh
# The playbook of the Ansible recipe, by the Ansible of the suite, against the installation that it runs in.
set -eu
apt-get update -qq
apt-get install -qq -y --no-install-recommends ansible-core python3-apt >/dev/null
echo '10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev 0 0' >/etc/fstab
ansible-playbook --version | sed -n 1p

# Run the playbook; print the tasks that changed something, and the count.
play() {
	echo "play: $*"
	ansible-playbook -i localhost, -c local images/ansible/nfstuned.yml -e nfstuned_deb=/root/nfstuned.deb "$@" >/tmp/said 2>&1 || {
		cat /tmp/said
		exit 1
	}
	awk '/^(TASK|RUNNING)/ { task = $0 } /^changed:/ { print task } /^localhost / { print }' /tmp/said
}

play --syntax-check
play -e nfstuned_image=true --check
[ ! -e /usr/bin/nfstuned ] && [ ! -e /etc/nfstuned ]
play -e nfstuned_image=true
[ "$(systemctl --root=/ is-enabled nfstuned.service)" = enabled ]
cat /etc/nfsmount.conf.d/50-nfstuned.conf
play -e nfstuned_image=true
grep -q ' changed=0 ' /tmp/said
play -e nfstuned_image=true --check
grep -q ' changed=0 ' /tmp/said

# As on a running host, where the names of servers are asked for; here is none, and no service to be reloaded.
nfstuned bake --undo
play
[ -e /etc/nfsmount.conf.d/50-nfstuned.conf ]
play
grep -q ' changed=0 ' /tmp/said
