#!/bin/sh
# Runs in a guest, as root: a node of the cluster that dev/cluster has started on the guest's host. It has an NFS
# server of its own. Whenever they change, it prints a line with @node, the kernel's read-ahead and connections of
# each NFS mount, and the files of the system that are newer than the node.
set -eu
cd /lab
export PATH="/lab/usr/bin:/lab/usr/sbin:$PATH"

say() { echo "lab: $(cut -d' ' -f1 /proc/uptime) s  $*"; }

look() {
	awk '$1 == "device" { nfs = $8 ~ /^nfs4?$/ } nfs && $1 == "device" { point = $5 } nfs && $1 == "xprt:" { n[point]++ }
		END { for (point in n) print point, n[point] }' /proc/self/mountstats | while read -r point connections; do
		device=$(awk -v point="$point" '$5 == point { print $3 }' /proc/self/mountinfo)
		echo "$(cat "/sys/class/bdi/$device/read_ahead_kb") $connections"
	done
	find /etc /run/udev/rules.d /run/systemd/system /usr/lib/udev /usr/lib/systemd -newer /lab/ready 2>/dev/null
}

say "$(uname -r) is up"
ip link set lo up
ip address add 10.10.10.10/32 dev lo
for link in /sys/class/net/e*; do
	ip address add 10.0.2.15/24 dev "${link##*/}"
	ip link set "${link##*/}" up
done
echo '10.10.10.10 sa1.file.core.windows.net' >>/etc/hosts
mkdir -p /sa1/share /etc/cni/net.d /etc/containerd
echo '/sa1/share *(rw,no_root_squash,no_subtree_check,fsid=1)' >/etc/exports
systemctl start nfs-server
say "the NFS server runs"

# The pods are in the node's own network: none needs a plugin, but containerd waits for its configuration.
echo '{"cniVersion": "0.4.0", "name": "node", "plugins": [{"type": "loopback"}]}' >/etc/cni/net.d/node.conflist
cat >/etc/containerd/config.toml <<-CONFIG
	version = 2
	[plugins."io.containerd.grpc.v1.cri"]
	sandbox_image = "localhost/busybox:1"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
	runtime_type = "io.containerd.runc.v2"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
	SystemdCgroup = true
CONFIG
cat >kubelet.json <<-CONFIG
	{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "systemd",
	"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "imageGCHighThresholdPercent": 100,
	"authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
	"authorization": {"mode": "AlwaysAllow"}, "evictionHard": {"memory.available": "10Mi"}}
CONFIG
containerd >containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 1; done
say "containerd runs"
for image in busybox.tar image.tar; do ctr -n k8s.io images import "$image"; done
say "the images are imported"
# Something to find for `nfstuned check`.
echo 'sa1.file.core.windows.net:/sa1/share /mnt nfs vers=4.1,soft,noauto 0 0' >>/etc/fstab
touch ready
./kubelet --config=kubelet.json --kubeconfig=config --hostname-override=node --node-ip=10.0.2.15 >kubelet.log 2>&1 &
say "the kubelet runs"
last=
while kill -0 $! 2>/dev/null; do
	found=$(look | xargs)
	[ "$found" = "$last" ] || echo "@node $found"
	last=$found
	sleep 1
done
say "the kubelet ended"
tail -n 30 kubelet.log
