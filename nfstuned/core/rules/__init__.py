"""The rule catalogue: every rule of `nfstuned check`, in the order of the ids.

A rule is one row here, which names the function that judges; a page in docs/rules/; and at least one host in
tests/hosts/ that fails it and one that passes.
"""

from __future__ import annotations

from nfstuned.core.rules import nfs1_read_ahead as read_ahead
from nfstuned.core.rules import nfs2_connections as connections
from nfstuned.core.rules import nfs2_lines as lines
from nfstuned.core.rules import nfs2_nconnect as nconnect
from nfstuned.core.rules import nfs3_entries as entries
from nfstuned.core.rules import nfs3_options as options
from nfstuned.core.rules import nfs4_endpoint as endpoint
from nfstuned.core.rules import nfs4_identity as identity
from nfstuned.core.rules import nfs4_tls as tls
from nfstuned.core.rules import nfs4_tunnels as tunnels
from nfstuned.core.rules import nfs5_host as host
from nfstuned.core.rules import nfs7_image as image
from nfstuned.core.rules import smb6 as smb
from nfstuned.model.finding import Need, Rule, Severity

_ERROR, _WARNING, _ADVICE, _INFO = Severity.ERROR, Severity.WARNING, Severity.ADVICE, Severity.INFO
_LIVE, _SAMPLE = frozenset({Need.LIVE}), frozenset({Need.SAMPLE})
_NETWORK, _IMAGE = frozenset({Need.NETWORK}), frozenset({Need.IMAGE})

_FILES = "https://learn.microsoft.com/en-us/azure/storage/files"
_ANF = "https://learn.microsoft.com/en-us/azure/azure-netapp-files"
_HELP = "https://learn.microsoft.com/en-us/troubleshoot/azure/azure-storage/files"
_VNET = "https://learn.microsoft.com/azure/virtual-network"
_SYSTEMD = "https://www.freedesktop.org/software/systemd/man/latest"
_MAN5 = "https://man7.org/linux/man-pages/man5"
_PERFORMANCE = f"{_FILES}/nfs-performance"
_MOUNTING = f"{_FILES}/storage-files-how-to-mount-nfs-shares"
_NETWORKING = f"{_FILES}/storage-files-networking-overview"
_ENDPOINTS = f"{_FILES}/storage-files-networking-endpoints"
_TLS = f"{_FILES}/encryption-in-transit-for-nfs-shares"
_AZNFS = "https://github.com/Azure/AZNFS-mount"
_STUNNEL = "https://www.stunnel.org/static/stunnel.html"
_DIRECTORIES = f"{_FILES}/nfs-large-directories"
_SMB = f"{_FILES}/smb-performance"
_SMB_MOUNTING = f"{_FILES}/storage-how-to-use-files-linux"
_NETAPP = f"{_ANF}/performance-linux-mount-options"
_SLOTS = f"{_ANF}/performance-linux-concurrency-session-slots"
_NETAPP_SMB = f"{_ANF}/azure-netapp-files-smb-performance"
_SIZES = "https://learn.microsoft.com/azure/azure-netapp-files/performance-virtual-machine-sku"
_PORTS = f"{_HELP}/security/files-troubleshoot-linux-nfs"
_TROUBLE = f"{_HELP}/linux/files-troubleshoot-linux-nfs"
_SLOW = f"{_HELP}/performance/files-troubleshoot-performance"
_SMB_TROUBLE = f"{_HELP}/connectivity/files-troubleshoot-linux-smb"
_ACCELERATED = f"{_VNET}/accelerated-networking-how-it-works"
_MTU = f"{_VNET}/how-to-virtual-machine-mtu"
_THROUGHPUT = f"{_VNET}/virtual-machine-network-throughput"
_QUEUES = "https://docs.kernel.org/networking/scaling.html"
_UDEV = f"{_SYSTEMD}/udev.html"
_SYSTEMCTL = f"{_SYSTEMD}/systemctl.html"
_FSTAB_GENERATOR = f"{_SYSTEMD}/systemd-fstab-generator.html"
_NFS = f"{_MAN5}/nfs.5.html"
_NFSMOUNT_CONF = f"{_MAN5}/nfsmount.conf.5.html"
_NFSRAHEAD = "https://manpages.debian.org/bookworm/nfs-common/nfsrahead.5.en.html"
_BDI = "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-bdi"
_CLIENT_ID = "https://docs.kernel.org/filesystems/nfs/client-identifier.html"
_CLNT = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/net/sunrpc/clnt.c"

RULES: tuple[Rule, ...] = (
    Rule("NFS101", "read-ahead-below-policy", _WARNING, read_ahead.below_policy, _PERFORMANCE, _LIVE),
    Rule("NFS102", "read-ahead-excessive", _WARNING, read_ahead.excessive, _PERFORMANCE, _LIVE),
    Rule("NFS103", "read-ahead-below-page", _ERROR, read_ahead.below_page, "mm/readahead.c", _LIVE),
    Rule("NFS104", "read-ahead-contested", _WARNING, read_ahead.contested, _NFSRAHEAD),
    Rule("NFS105", "udev-rule-broken", _ERROR, read_ahead.broken, _UDEV),
    Rule("NFS106", "udev-rule-masked", _WARNING, read_ahead.masked, _UDEV),
    Rule("NFS107", "udev-rule-outrun", _WARNING, read_ahead.outrun, _UDEV),
    Rule(
        "NFS108", "read-ahead-shared-conflict", _WARNING, read_ahead.shared_conflict, "fs/nfs/super.c", _LIVE
    ),
    Rule(
        "NFS109",
        "read-ahead-wasted",
        _ADVICE,
        read_ahead.wasted,
        "include/linux/nfs_iostat.h",
        _LIVE | _SAMPLE,
    ),
    Rule("NFS110", "read-ahead-not-persistent", _INFO, read_ahead.not_persistent, _BDI, _LIVE),
    Rule("NFS111", "udev-rule-tolerated", _WARNING, read_ahead.tolerated, _UDEV),
    Rule("NFS112", "udev-file-unread", _WARNING, read_ahead.unread, _UDEV),
    Rule("NFS201", "nconnect-below-policy", _ADVICE, nconnect.below_policy, _PERFORMANCE),
    Rule("NFS202", "nconnect-above-policy", _WARNING, nconnect.above_policy, _PERFORMANCE),
    Rule("NFS203", "nconnect-unsupported-kernel", _ERROR, nconnect.unsupported_kernel, _NETAPP),
    Rule("NFS204", "nconnect-inherited", _WARNING, nconnect.inherited, _NETAPP),
    Rule(
        "NFS205", "nconnect-shared-private-endpoint", _WARNING, nconnect.shared_private_endpoint, _PERFORMANCE
    ),
    Rule("NFS206", "nconnect-public-endpoint", _WARNING, nconnect.public_endpoint, _PERFORMANCE),
    Rule("NFS207", "nconnect-with-kerberos", _WARNING, nconnect.with_kerberos, _NETAPP),
    Rule("NFS208", "connections-missing", _WARNING, connections.connections_missing, _CLNT, _LIVE),
    Rule("NFS209", "queue-depth-high", _ADVICE, connections.queue_deep, _PERFORMANCE, _SAMPLE),
    Rule("NFS210", "slot-table-unbounded", _WARNING, connections.slot_table_unbounded, _SLOTS),
    Rule("NFS211", "session-slots-low", _ADVICE, connections.session_slots_low, _SLOTS),
    Rule("NFS212", "nconnect-latency-bound", _ADVICE, connections.latency_bound, _PERFORMANCE, _SAMPLE),
    Rule("NFS213", "remount-cannot-change", _INFO, lines.remount, _NFS),
    Rule("NFS214", "nfsmount-conf-ineffective", _ERROR, lines.ineffective, _NFSMOUNT_CONF),
    Rule(
        "NFS215",
        "nconnect-lines-differ",
        _WARNING,
        nconnect.lines_differ,
        "fs/nfs/client.c, nfs_match_client",
    ),
    Rule("NFS301", "version-not-supported", _ERROR, options.wrong_version, _MOUNTING),
    Rule("NFS302", "security-not-supported", _ERROR, options.wrong_security, _MOUNTING),
    Rule("NFS303", "transfer-size-low", _WARNING, options.small_transfers, _MOUNTING),
    Rule("NFS304", "transfer-size-high", _WARNING, options.large_transfers, _NETAPP),
    Rule("NFS305", "noresvport-missing", _WARNING, options.reserved_port, _MOUNTING),
    Rule("NFS306", "attribute-cache-short", _ADVICE, options.short_cache, _MOUNTING),
    Rule("NFS307", "soft-mount", _WARNING, options.soft_mount, "nfs(5)"),
    Rule("NFS308", "fstab-not-network-aware", _WARNING, entries.network_unaware, _MOUNTING),
    Rule(
        "NFS309",
        "foreign-options",
        _ERROR,
        entries.foreign_options,
        "fs/nfs/fs_context.c, nfs(5), mount.cifs(8)",
    ),
    Rule("NFS310", "autofs-map", _INFO, entries.unexpanded_maps, "autofs(5)"),
    Rule("NFS311", "source-refused", _ERROR, entries.refused_source, _MOUNTING),
    Rule("NFS312", "over-udp", _WARNING, options.over_udp, _NFS),
    Rule("NFS313", "mount-point-twice", _WARNING, entries.point_twice, _FSTAB_GENERATOR),
    Rule("NFS314", "locks-local", _INFO, options.local_locks, _NFS),
    Rule("NFS315", "unit-misnamed", _ERROR, entries.misnamed_unit, "systemd.mount(5)"),
    Rule("NFS401", "public-endpoint", _WARNING, endpoint.public, _NETWORKING, _NETWORK),
    Rule("NFS402", "privatelink-not-linked", _ERROR, endpoint.not_linked, _NETWORKING, _NETWORK),
    Rule("NFS403", "mounted-by-address", _ADVICE, endpoint.by_address, _ENDPOINTS),
    Rule("NFS404", "address-drift", _WARNING, endpoint.drifted, _NFS, _LIVE | _NETWORK),
    Rule("NFS405", "port-unreachable", _ERROR, endpoint.unreachable, _PORTS, _NETWORK),
    Rule("NFS406", "tls-helper-down", _ERROR, tls.helper_down, _TLS),
    Rule("NFS407", "tls-mixed", _ERROR, tls.mixed, _TLS),
    Rule("NFS408", "name-unresolved", _ERROR, endpoint.unresolved, _NFS, _NETWORK),
    Rule("NFS409", "tls-wrong-cloud", _WARNING, tls.wrong_cloud, _TLS),
    Rule("NFS410", "clear-in-public", _ADVICE, endpoint.clear_in_public, _NFS, _NETWORK),
    Rule("NFS411", "mount-stalled", _ERROR, endpoint.stalled, _NFS, _LIVE),
    Rule("NFS412", "mount-missing", _ERROR, endpoint.missing, _SYSTEMCTL, _LIVE),
    Rule("NFS413", "client-identity-generic", _WARNING, identity.generic, _CLIENT_ID),
    Rule("NFS414", "client-identity-shared", _ERROR, identity.shared, _CLIENT_ID, _LIVE | _SAMPLE),
    Rule("NFS415", "tls-ca-unusable", _ERROR, tunnels.unusable_ca, _STUNNEL, _LIVE),
    Rule("NFS416", "tls-ca-expires", _WARNING, tunnels.expiring_ca, _STUNNEL, _LIVE),
    Rule("NFS417", "tls-unverified", _WARNING, tunnels.unverified, _STUNNEL, _LIVE),
    Rule("NFS418", "tls-port-twice", _ERROR, tunnels.port_twice, _AZNFS, _LIVE),
    Rule("NFS419", "tls-entry-waits", _WARNING, tunnels.entry_waits, _AZNFS, _LIVE),
    Rule("NFS420", "tls-server-refused", _ERROR, tunnels.server_refused, _STUNNEL, _LIVE),
    Rule("NFS421", "tls-tunnel-full", _ADVICE, tunnels.thread_full, _STUNNEL, _LIVE | _SAMPLE),
    Rule("NFS501", "kernel-readdir-hang", _ERROR, host.readdir_hang, _TROUBLE),
    Rule("NFS502", "helper-missing", _ERROR, host.missing_helper, _TROUBLE),
    Rule("NFS503", "idmapping-enabled", _WARNING, host.id_mapping, _TROUBLE),
    Rule("NFS504", "inode-hash-default", _INFO, host.inode_hash, _DIRECTORIES, _LIVE),
    Rule("NFS505", "kernel-old-for-depth", _WARNING, host.kernel_without_io_depth, _SLOW),
    Rule("NFS506", "accelerated-networking-off", _WARNING, host.without_vf, _ACCELERATED, _LIVE),
    Rule("NFS507", "vf-not-carrying", _WARNING, host.idle_vf, _ACCELERATED, _LIVE | _SAMPLE),
    Rule("NFS508", "mtu-not-1500", _WARNING, host.other_mtu, _MTU, _LIVE),
    Rule("NFS509", "single-queue-nic", _WARNING, host.single_queue, _QUEUES, _LIVE),
    Rule("NFS510", "egress-near-limit", _INFO, host.near_egress, _THROUGHPUT, _LIVE | _NETWORK | _SAMPLE),
    Rule("NFS511", "vm-size-old", _INFO, host.old_size, _SIZES, _LIVE | _NETWORK),
    Rule("NFS701", "daemon-not-enabled", _WARNING, image.not_enabled, _SYSTEMCTL, _IMAGE),
    Rule("NFS702", "module-missing", _ERROR, image.module_missing, "fs/nfs/Makefile", _IMAGE),
    Rule("NFS703", "kernel-config", _INFO, image.kernel_defaults, "fs/nfs/client.c", _IMAGE),
    Rule("NFS704", "config-invalid", _ERROR, image.config_invalid, "man:nfstuned.toml(5)", _IMAGE),
    Rule("SMB601", "multichannel-unused", _ADVICE, smb.multichannel_unused, _SMB),
    Rule("SMB602", "channels-above-four", _WARNING, smb.too_many_channels, _SLOW),
    Rule("SMB603", "multichannel-unsupported-kernel", _WARNING, smb.unsupported_kernel, _SMB),
    Rule("SMB604", "channels-missing", _WARNING, smb.channels_missing, "fs/smb/client/cifs_debug.c", _LIVE),
    Rule("SMB605", "dialect-old", _WARNING, smb.dialect_old, _SMB_MOUNTING),
    Rule("SMB606", "attribute-cache-short", _ADVICE, smb.short_attribute_cache, _SMB_MOUNTING),
    Rule("SMB607", "cache-none", _WARNING, smb.no_cache, _SLOW),
    Rule("SMB608", "signing-cost", _INFO, smb.signing_cost, _NETAPP_SMB),
    Rule("SMB609", "encryption-cost", _INFO, smb.encryption_cost, _NETAPP_SMB),
    Rule("SMB610", "fips-with-ntlm", _ERROR, smb.ntlm_under_fips, _SMB_TROUBLE),
    Rule("SMB611", "metadata-cache", _INFO, smb.metadata_heavy, _SMB, _LIVE | _SAMPLE),
    Rule("SMB612", "secret-in-file", _WARNING, smb.secret_in_file, "mount.cifs(8)"),
    Rule("SMB613", "credentials-readable", _WARNING, smb.readable_credentials, _SMB_MOUNTING),
)
