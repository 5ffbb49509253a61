"""The names of mount options: those of mount(8), of NFS and of SMB.

NFS: nfs_fs_parameters of fs/nfs/fs_context.c up to Linux 6.17, with what older kernels had and nfs(5). SMB:
smb3_fs_parameters of fs/smb/client/fs_context.c up to Linux 6.14, with mount.cifs(8). A name with "[no]" is
two names.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    words = text.split()
    plain = {word.removeprefix("[no]") for word in words}
    return frozenset(plain | {"no" + word[4:] for word in words if word.startswith("[no]")})


COMMON = _names("""
    defaults ro rw [no]auto [no]user [no]users [no]owner [no]group _netdev nofail comment helper uhelper
    [no]exec [no]suid [no]dev sync async dirsync [no]atime [no]diratime [no]relatime [no]strictatime
    [no]lazytime [no]mand [no]iversion [no]symfollow silent loud remount bind rbind move private
    rprivate shared rshared slave rslave unbindable runbindable sub context fscontext defcontext
    rootcontext seclabel
""")
"""mount(8), libmount's tables, and the labels of security modules."""

NFS = _names("""
    [no]ac [no]acl acdirmax acdirmin acregmax acregmin actimeo addr bg bsize clientaddr [no]cto fg
    [no]fsc hard [no]intr local_lock [no]lock lookupcache [no]migration minorversion mountaddr mounthost
    mountport mountproto mountvers namlen nconnect max_connect nfsvers port [no]posix proto [no]rdirplus
    rdma [no]resvport retrans retry rsize sec [no]sharecache sloppy soft softerr [no]softreval source
    tcp timeo [no]trunkdiscovery udp v2 v3 v4 v4.0 v4.1 v4.2 vers write wsize xprtsec cert_serial
    privkey_serial [no]alignwrite fatal_neterrors nfsprog mountprog
""")

RARE_NFS = _names("""
    [no]sharetransport [no]quota usrquota grpquota remoteports localports localports_failover
    spread_reads spread_writes [no]idlexprt sigdown noextend
""")
"""Names that some distribution's or vendor's kernel takes: nobody can say from here that they are wrong."""

AZNFS = _names("notls clean")
"""What mount.aznfs keeps for itself."""

SMB = _names("""
    acdirmax [no]acl acregmax actimeo addr [no]autotune backupgid backupuid blocksend [no]brl bsize
    cache cifsacl closetimeo codepage compress cred credentials cruid dfs dir_mode dirmode directio
    dmask dom domain domainauto [no]dynperm echo_interval esize file_mode fmask [no]forcegid forcemand
    forcemandatorylock [no]forceuid forcedirectio fsc gid guest [no]handlecache handletimeout [no]hard
    idsfromsid ignore_signature ignorecase [no]intr iocharset ip [no]lease [no]linux locallease
    [no]mapchars [no]mapposix max_cached_dirs max_channels max_credits mfsymlinks min_enc_offload
    modefromsid modesid [no]multichannel multiuser [no]nativesocket netbiosname noac noautotune
    noblocksend nocase nodelete nodfs nosharesock nosparse pass pass2 password password2 path [no]perm
    [no]persistenthandles port [no]posix [no]posixpaths prefixpath rasize rdma reparse
    [no]resilienthandles retrans rootfs rsize rwpidforward seal sec [no]serverino servern [no]setuids
    setuidfromacl [no]sfu sign signloosely sloppy snapshot [no]soft source srcaddr strictcache
    [no]strictsync symlink symlinkroot target [no]tcpnodelay uid unc [no]unicode [no]unix upcall_target
    user [no]user_xattr username ver vers witness workgroup wsize
""")

SMB_VERSIONS = frozenset({"1.0", "2.0", "2.1", "3.0", "3.02", "3.0.2", "3.1.1", "3.11", "3", "default"})
SMB_FLAVOURS = frozenset(
    {
        *("none", "krb5", "krb5i", "ntlm", "ntlmi", "ntlmv2", "ntlmv2i", "ntlmssp", "ntlmsspi", "nontlm"),
    }
)
