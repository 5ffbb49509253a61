#!/bin/sh
# The Packer recipe, as root in a minimal Debian. Debian 12 has a Packer (1.6.6): it builds this installation itself
# over ssh, and a program that only notes its arguments stands in for Azure's agent. Elsewhere only the script is run.
set -eu
echo '10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,hard,_netdev 0 0' >/etc/fstab

# Let Packer build this machine by the recipe, with another source in the place of azure-arm.
by_packer() {
	apt-get install -qq -y --no-install-recommends packer openssh-server sudo >/dev/null
	packer version
	packer fmt -check images/packer
	# required_plugins is younger than 1.6.6, which has the builder for Azure in itself.
	mkdir images/azure images/here
	sed '/^packer {/,/^}/d' images/packer/nfstuned.pkr.hcl >images/azure/nfstuned.pkr.hcl
	cp images/packer/bake.sh images/azure
	packer validate -var deb=nfstuned.deb images/azure
	echo "packer validate: exit status $?"

	sed -e '/^source /,/^}/d' -e 's/source.azure-arm/source.null/' images/azure/nfstuned.pkr.hcl >images/here/nfstuned.pkr.hcl
	cat >>images/here/nfstuned.pkr.hcl <<-'SOURCE'
		source "null" "debian" {
		  ssh_host             = "127.0.0.1"
		  ssh_port             = 2222
		  ssh_username         = "builder"
		  ssh_private_key_file = "/root/.ssh/id_ed25519"
		}
	SOURCE
	cp images/packer/bake.sh images/here
	useradd --create-home --shell /bin/sh builder
	echo 'builder ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/builder
	ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
	install -D -o builder -m 0600 /root/.ssh/id_ed25519.pub /home/builder/.ssh/authorized_keys
	mkdir -p /run/sshd
	/usr/sbin/sshd -p 2222 -o ListenAddress=127.0.0.1
	if packer build -color=false -var deb=nfstuned.deb images/here; then
		echo "a build without Azure's agent succeeds"
		exit 1
	fi
	printf '#!/bin/sh\necho "$@" >/var/tmp/agent\n' >/usr/sbin/waagent
	chmod +x /usr/sbin/waagent
	packer build -color=false -var deb=nfstuned.deb images/here
	[ "$(cat /var/tmp/agent)" = "-force -deprovision+user" ]
}

by_hand() {
	cp nfstuned.deb images/nfstuned.toml /tmp
	sh images/packer/bake.sh
}

apt-get update -qq
if [ -n "$(apt-cache --names-only search '^packer$')" ]; then by_packer; else by_hand; fi
[ ! -e /tmp/nfstuned.deb ] && [ ! -e /tmp/nfstuned.toml ]
[ "$(systemctl --root=/ is-enabled nfstuned.service)" = enabled ]
cat /etc/nfsmount.conf.d/50-nfstuned.conf
nfstuned bake

# A policy that is none ends the build.
cp nfstuned.deb /tmp
echo 'mode = persist' >/tmp/nfstuned.toml
if sh images/packer/bake.sh; then exit 1; fi
