#!/bin/sh
# Both files of the cloud-init recipe, by the suite's cloud-init: the stages of a boot by hand, with loopback only.
set -eu
apt-get update -qq
apt-get install -qq -y --no-install-recommends cloud-init curl ca-certificates python3-systemd iproute2 >/dev/null
cloud-init --version
for file in images/cloud-init/*.yaml; do
	cloud-init schema --config-file "$file"
done

# The modules that the files use, in the order of Debian's cloud.cfg: the others would change the machine's disk.
cat >/etc/cloud/cloud.cfg.d/99-trial.cfg <<'CONFIG'
datasource_list: [NoCloud]
network: {config: disabled}
cloud_init_modules: [write-files, mounts]
cloud_config_modules: [runcmd]
cloud_final_modules: [package-update-upgrade-install, scripts-user]
CONFIG
# No systemd runs, and no server answers: these note what they are asked for.
for name in systemctl mount; do
	printf '#!/bin/sh\necho "%s $*" >>/run/asked\n' "$name" >"/usr/local/bin/$name"
	chmod +x "/usr/local/bin/$name"
done
PATH=/usr/local/bin:$PATH
mkdir served
cp nfstuned.deb served/nfstuned_0.2.0-1_amd64.deb

# Boot for the first time with a file as user data. No stage may have an error.
boot() {
	echo "boot: $1"
	rm -rf /var/lib/cloud /run/cloud-init /run/asked
	mkdir -p /var/lib/cloud/seed/nocloud
	echo "instance-id: trial" >/var/lib/cloud/seed/nocloud/meta-data
	sed 's,https://packages.example.com,http://127.0.0.1:8000,' "$1" >/var/lib/cloud/seed/nocloud/user-data
	: >/etc/fstab
	# shellcheck disable=SC2016  # the inner shell's variables
	unshare --net sh -euc '
		ip link set lo up
		python3 -m http.server --bind 127.0.0.1 --directory served 8000 &
		server=$!
		for stage in "init --local" init "modules --mode=config" "modules --mode=final"; do cloud-init $stage; done
		kill $server' >/tmp/said 2>&1 || {
		cat /tmp/said
		exit 1
	}
	python3 -c 'import json; print("errors:", json.load(open("/run/cloud-init/result.json"))["v1"]["errors"])' | tee /tmp/errors
	grep -qF 'errors: []' /tmp/errors || {
		cat /tmp/said
		exit 1
	}
	cat /run/asked /etc/fstab
	[ -d /mnt/vol1 ]
	nfstuned config check
	nfstuned config show | grep -q 10.1.2.4
}

boot images/cloud-init/user-data-install.yaml
[ "$(dpkg-query -W -f '${db:Status-Status}' nfstuned)" = installed ]
[ "$(/bin/systemctl --root=/ is-enabled nfstuned.service)" = enabled ]
rm -r /etc/nfstuned /mnt/vol1
boot images/cloud-init/user-data.yaml
