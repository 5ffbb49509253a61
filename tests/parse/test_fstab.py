from __future__ import annotations

import pytest

from nfstuned.model.mounts import Request
from nfstuned.parse.etc.requests import parse_fstab, parse_utab, parse_verify
from tests.parse.rows import shown

FSTAB = "/etc/fstab"
REAL = """\
# <file system> <mount point> <type> <options> <dump> <pass>
UUID=0a3407de-014b-458b-b5c1-848e92a327a3 / ext4 errors=remount-ro 0 1

sa1.file.core.windows.net:/sa1/share\t/mnt/a\tnfs\tvers=4.1,nconnect=4,sec=sys,_netdev\t0\t0
  10.1.2.4:/vol\\0401 /mnt/with\\040space\\043\\134 nfs4 context="a,b" 0
[fd00::10]:/b /b nfs defaults
#10.1.2.4:/c /c nfs defaults 0 0
//sa1.file.core.windows.net/s /smb cifs vers=3.1.1 0 0
sa1.file.core.windows.net:/sa1/s /tls aznfs vers=4.1 0 0
"""


def entry(source: str, point: str, options: str, line: int = 1, fstype: str = "nfs") -> Request:
    return Request(source, point, options, FSTAB, line, fstype=fstype)


def test_only_network_entries_are_taken_and_decoded_with_their_type() -> None:
    azure, smb = "sa1.file.core.windows.net:/sa1/s", "//sa1.file.core.windows.net/s"
    assert parse_fstab(REAL) == (
        entry(f"{azure}hare", "/mnt/a", "vers=4.1,nconnect=4,sec=sys,_netdev", 4),
        entry("10.1.2.4:/vol 1", "/mnt/with space#\\", 'context="a,b"', 5, fstype="nfs4"),
        entry("[fd00::10]:/b", "/b", "defaults", 6),
        entry(smb, "/smb", "vers=3.1.1", 8, fstype="cifs"),
        entry(azure, "/tls", "vers=4.1", 9, fstype="aznfs"),
    )


def test_an_escape_of_a_byte_that_is_0_ends_the_field_as_mount_reads_it() -> None:
    text = "nas:/a\\000b /m\\400n nfs ro,nconnect=4\\0005 0 0\n"
    assert parse_fstab(text) == (entry("nas:/a", "/m", "ro,nconnect=4"),)


@pytest.mark.parametrize(
    ("named", "fstype"),
    [
        *(("nfs4,nfs", "nfs4"), ("ext4,nfs", "nfs"), ("smb3,cifs", "smb3"), ("ext4,xfs", None), (",", None)),
        *(("NFS", "nfs"), ('"cifs"', "cifs"), ("Nfs4.1", "nfs"), ("nfsv3", "nfs"), ("nf", "nfs")),
        *(("smbfs", "cifs"), ("smb2", "cifs"), ("SMB3", "smb3"), ("xfs", "nfs"), ("glusterfs", None)),
    ],
)
def test_the_type_is_the_first_of_a_network_or_of_a_misspelt_name(named: str, fstype: str | None) -> None:
    found = (entry("nas:/a", "/m", "rw", fstype=fstype)._replace(named=named),) if fstype else ()
    assert parse_fstab(f"nas:/a /m {named} rw 0 0\n") == found


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("nas:/a /m defaults 0 0", "defaults"),
        ("nas:/a /m rw,_netdev,nofail 0 0", "rw,_netdev,nofail"),
        ("nas:/a /m vers=4.1,hard", "vers=4.1,hard"),
        ("//nas/a /m uid=1000,_netdev 0 0", "uid=1000,_netdev"),
    ],
)
def test_a_line_with_options_in_the_place_of_the_type_is_an_error(line: str, options: str) -> None:
    why = "the options stand before the type"
    assert shown(parse_fstab(line)) == [f"{FSTAB}:1: {why}: '{options}'"]


@pytest.mark.parametrize(
    "line",
    [
        *("mon1:6789:/ /m ceph name=admin 0 0", "/dev/sda1 /m defaults 0 0", "host:/v /m glusterfs rw 0 0"),
        *("/dev/vda / ext4 rw x y", "proc /proc proc", "/dev/vdb /b # why", "- /tmp tmpfs rw 0 0"),
        *("/dev/disk/by-path/pci-0000:00:1f.2 /m ext4", "/dev/vda //b ext4", "nas /m ext4 rw 0 0"),
    ],
)
def test_lines_of_other_types_stay_foreign_whatever_is_wrong_with_them(line: str) -> None:
    assert parse_fstab(line) == ()


@pytest.mark.parametrize(
    ("source", "fstype"),
    [
        *(("nas:/a", "nfs"), ("[fd00::10]:/b", "nfs"), ("//nas/a", "cifs"), ("//nas:445/a", None)),
        *(("/dev/disk/by-path/pci-0000:00:/1", None), ("https://dav.example.com/", None)),
        *(("/dev/vda", None), ("UUID=0a34", None)),
    ],
)
def test_of_a_source_that_names_a_server_mount_guesses_the_type(source: str, fstype: str | None) -> None:
    found = (entry(source, "/m", "rw", fstype=fstype)._replace(named="auto"),) if fstype else ()
    assert parse_fstab(f"{source} /m auto rw 0 0\n{source} /n none rw 0 0\n") == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s:/", "no mount point after 's:/'"),
        ("s:/ /m", "no type after '/m'"),
        ("s:/ /m nfs a, v=3", "dump frequency is not a number: 'v=3': remove the blank from the options"),
        ("s:/ /m nfs -o rw,hard", "-o belongs to mount's command line: write 'rw,hard' in its place"),
        ("s:/ /m nfs rw # why", "dump frequency is not a number: '#'"),
        ("s:/ /m nfs rw 0 x", "fsck pass is not a number: 'x'"),
        ("s:/ /m nfs rw 0 0\r ", "fsck pass is not a number: '0\\r'"),
        ("\ufeffs:/ /m nfs rw", "a byte order mark before 's:/': save the file without it"),
        ("\ufeff# a comment", "a byte order mark before '#': save the file without it"),
        ("\ufeffUUID=1 / ext4 rw 0 1", "a byte order mark before 'UUID=1': save the file without it"),
        ("s:/ /m n\0f\0s rw 0 0", "a NUL byte, which ends the line for mount(8)"),
    ],
)
def test_an_entry_that_mount_would_not_take_is_located_and_others_survive(line: str, message: str) -> None:
    before, error, after = shown(parse_fstab(f"s:/ /m nfs rw\n{line}\ns:/ /m nfs rw 0 0 # why\n"))
    assert (before, after) == (entry("s:/", "/m", "rw"), entry("s:/", "/m", "rw", 3))
    assert error == f"{FSTAB}:2: {message}"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        *((end, "") for end in ("", "\r")),
        *((f" rw{end}", "rw") for end in ("\r", " +1 -2\r", " 0 0 more", " 0 0 # why")),
    ],
)
def test_what_findmnt_takes_is_an_entry(line: str, options: str) -> None:
    assert parse_fstab(f"# new\r\n\r\ns:/ /m nfs{line}\n") == (entry("s:/", "/m", options, 3),)


NUMBERED = "a numbered list, or output of cat -n or grep"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("nas:/x on /mnt/s type nfs4 (rw,relatime,vers=4.1,soft)", "output of mount(8)"),
        ("//nas/x on /mnt/a b type cifs (rw,vers=3.1.1)", "output of mount(8)"),
        (
            "proc /proc proc rw,nosuid,relatime 0 0\nnas:/x /mnt nfs4 rw,vers=4.1,hard,addr=10.0.0.6 0 0",
            "a copy of /proc/mounts",
        ),
        ("-e nas:/x\t/mnt\tnfs\tdefaults\t0\t0\n-e nas:/y /m nfs rw 0 0", "output of echo -e in a shell"),
        ("26 27 0:46 / /mnt rw,relatime shared:1 - nfs4 nas:/x rw,vers=4.1", "mountinfo"),
        ("/mnt nas:/x nfs4 rw,relatime,vers=4.1", "output of findmnt or df"),
        ("nas:/x 1.0T 5.1G 1T 1% /mnt", "output of findmnt or df"),
        ("/mnt //nas/x cifs rw,vers=3.1.1", "output of findmnt or df"),
        ("1 # /etc/fstab\n2 UUID=1 / ext4 rw 0 1\n3 nas:/x /mnt nfs rw 0 0", NUMBERED),
        ("12:nas:/x /mnt nfs rw 0 0\n/etc/fstab:12:nas:/y /mnt nfs rw 0 0", NUMBERED),
        ("> nas:/x /mnt nfs rw 0 0\n>nas:/x /mnt nfs rw 0 0", "a quotation, a table or a diff"),
        ("1. nas:/x /mnt nfs rw 0 0", "a numbered list"),
        ("* nas:/x /mnt nfs rw 0 0\n\u2022 nas:/x /mnt nfs rw 0 0", "a quotation, a table or a diff"),
        ("| nas:/x | /mnt | nfs |\n|---|---|---|", "a quotation, a table or a diff"),
        ("--- a/etc/fstab\n+nas:/x /mnt nfs rw 0 0", "a quotation, a table or a diff"),
        ('echo "nas:/x /mnt nfs rw 0 0" >> /etc/fstab', "a command"),
        ("$ cat /etc/fstab\n[root@vm ~]# cat /etc/fstab\nroot@vm:~# sudo nano /etc/fstab", "a command"),
        ("device nas:/x mounted on /mnt with fstype nfs4 statvers=1.1", "mountstats"),
        ("sudo mount -t nfs -o vers=4.1 nas:/x /mnt", "a command"),
        ("pcs resource create share Filesystem device=nas:/x directory=/mnt fstype=nfs", "a command"),
        ("[Mount]\nWhat=nas:/x\nWhere=/mnt\nType=nfs\nOptions=vers=4.1", "a unit of systemd"),
        ("/mnt/x -rw,hard nas:/x\ndata -fstype=nfs4 nas:/data", "a map of the automounter"),
        ("/srv 10.0.0.0/8(rw,no_root_squash)", "a line of exports(5)"),
        ('fileSystems."/mnt" = { device = "nas:/x"; fsType = "nfs"; };', "Nix"),
        ('fileSystems."/mnt" = {\n  device = "nas:/x";\n  options = [ "nfsvers=4.2" ];\n};', "Nix"),
        ('resource "aws_efs" "a" {\n  dns = "nas:/x"\n}', "HCL"),
        ("- hosts: all\n  tasks:\n  - mount:\n      src: nas:/x\n      fstype: nfs", "YAML or JSON"),
        ("{%- for m in mounts %}\n{% endfor %}", "a statement of a template"),
    ],
)
def test_text_that_is_no_fstab_is_named_once_with_its_command(text: str, kind: str) -> None:
    *before, error = shown(parse_fstab(f"s:/ /m nfs rw\n{text}\n"))
    assert before == ([] if "/proc/mounts" in kind else [entry("s:/", "/m", "rw")])
    assert str(error).startswith(f"{FSTAB}:2: {kind}")


KERNELS = (
    "nas:/x /mnt nfs4 rw,relatime,vers=4.1,rsize=65536,wsize=65536,namlen=255,hard,proto=tcp,timeo=600,"
    "retrans=2,sec=sys,clientaddr=10.0.0.5,local_lock=none,addr=10.0.0.6 0 0"
)
KERNELS_3 = (
    ":/x /mnt nfs rw,vers=3,namlen=255,hard,mountaddr=10.0.0.6,mountvers=3,local_lock=none,addr=10.0.0.6 0 0"
)
KERNELS_SMB = "//nas/x /mnt cifs rw,vers=3.1.1,addr=10.0.0.6,rsize=4194304,bsize=1048576,echo_interval=60 0 0"


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        (f"{KERNELS}\n", False),
        (f"sunrpc /run/rpc_pipefs rpc_pipefs rw 0 0\nsystemd-1 /m autofs rw 0 0\n{KERNELS_3}", False),
        (f"{KERNELS_SMB}\n\n", False),
        (f"# pasted\n{KERNELS}\n", True),
        (f"UUID=1 / ext4 defaults 0 1\n{KERNELS}\n", True),
        (f"/dev/sda1 / ext4 rw,relatime 0 0\n{KERNELS}\n", True),
        (f"{KERNELS}\nnas:/y /n nfs4 defaults,_netdev 0 0\n", True),
        ("nas:/x /mnt nfs rw,vers=3,addr=10.0.0.6 0 0\n", True),
    ],
)
def test_lines_of_proc_mounts_alone_are_no_fstab(text: str, *, judged: bool) -> None:
    first, *_ = shown(parse_fstab(text))
    assert isinstance(first, Request) == judged
    assert judged or "a copy of /proc/mounts" in str(first)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nas:/x mnt nfs rw 0 0", "the mount point is not a path: 'mnt'"),
        ("nas:/x ~/mnt nfs rw 0 0", "the mount point is not a path: '~/mnt': fstab does not expand ~"),
        ("nas:/x/x nfs4 soft,wsize= 8192", "no mount point between 'nas:/x/x' and the type nfs4: is a blank"),
        (
            'nas:/x "/m/my data" nfs4 rw',
            "the mount point is not a path: '\"/m/my': write a blank in a name as",
        ),
        (
            '"nas:/my data" /m nfs4 rw 0 0',
            "the mount point is not a path: 'data\"': write a blank in a name as",
        ),
        ("nas:/x /mnt/my data nfs4 rw 0 0", "the type is 'data': write a blank in a name as \\040 (f"),
        ("nas:/x\u00a0/m nfs rw 0 0", "fields with the blank U+00A0 between them: write a space or a tab"),
        ("nas:/x /m nfs\u3000rw 0 0", "fields with the blank U+3000 between them"),
        ("nas:/x\\t/m\\tnfs\\trw 0 0", "fields with \\t between them: write a space or a tab"),
        ("\u00a0nas:/x /m nfs rw 0 0", "fields with the blank U+00A0 between them"),
        ("/m nas:/x nfs rw,nofail 0 0", "the source and the mount point are exchanged: write 'nas:/x' first"),
        ("/m //nas/x cifs vers=3.1.1", "the source and the mount point are exchanged: write '//nas/x' first"),
        ("[ 'nas:/d', '/m', 'nfs', 'rw' ]", "YAML or JSON, not an entry"),
        ("${NAS}:/x /mnt ${TYPE} rw 0 0", "the type is a placeholder, '${TYPE}'"),
        ("${NAS}:/x /mnt nfs hard,{{ opts }} 0 0", "the options have the placeholder '{{ opts }}'"),
    ],
)
def test_a_line_that_a_placeholder_or_a_word_hides_is_an_error(line: str, message: str) -> None:
    (error,) = shown(parse_fstab(line))
    assert str(error).startswith(f"{FSTAB}:1: {message}")


def test_placeholders_with_blanks_are_one_field_and_mount_would_split_them() -> None:
    request, error = shown(parse_fstab("{{ nas }}:/{{ x }} <the point> nfs vers={{ v }},rw {{ d }} 0\n"))
    assert request == entry("{{ nas }}:/{{ x }}", "<the point>", "vers={{ v }},rw")
    assert "splits the placeholder in '{{ nas }}:/{{ x }}' at its blanks" in str(error)


# fprintf_utab_fs of libmount's tab_update.c; newer versions start with ID= and know UNIQID=
NFS = "ID=61 SRC=sa1:/a TARGET=/mnt/2 ROOT=/ ATTRS=vers=4.1,nconnect=8,addr=10.10.10.10 UNIQID=9"
ESCAPED = r"SRC=s:/a\040b TARGET=/mnt/with\040space ROOT=/ ATTRS=addr=fd00::10 OPTS=_netdev"
UTAB_ROWS = f"{NFS}\n{ESCAPED}\n"


def test_nfs_requests_are_found_with_the_options_of_mount_nfs_and_nothing_else() -> None:
    noise = "\nSRC=/dev/sda1 TARGET=/ ROOT=/ OPTS=_netdev,addr=x\nnoise\nSRC=x TARGET=/x ATTRS=a\n"
    assert shown(parse_utab(f"{UTAB_ROWS}{noise}SRC=s:/ ATTRS=vers=3\n{NFS}\n", "utab")) == [
        Request("sa1:/a", "/mnt/2", "vers=4.1,nconnect=8,addr=10.10.10.10", "utab", 1),
        Request("s:/a b", "/mnt/with space", "addr=fd00::10", "utab", 2),
        "utab:7: neither SRC nor TARGET may be missing: 'SRC=s:/ ATTRS=vers=3'",
        Request("sa1:/a", "/mnt/2", "vers=4.1,nconnect=8,addr=10.10.10.10", "utab", 8),
    ]


OUTPUT = """\
/
   [E] unreachable on boot required source: LABEL=x
/nope
   [E] unreachable on boot required target: No such file or directory
/proc
   [W] unreachable source: proc: No such file or directory
   [W] bogus seems unsupported by the current kernel
   [W] cannot detect on-disk filesystem type (No such file or directory)
"""
ERRORS = """\
findmnt: /tmp/t.fstab: parse error at line 3 -- ignored
findmnt: /tmp/t.fstab: parse error at line 6 -- ignored

2 parse errors, 2 errors, 3 warnings
"""


def test_errors_are_counted_and_warnings_are_not() -> None:
    missing = "/nope: unreachable on boot required target: No such file or directory"
    errors = ("/: unreachable on boot required source: LABEL=x", missing)
    lines = {"parse error at line 3": 1, "parse error at line 6": 1}
    assert parse_verify(OUTPUT, ERRORS) == dict.fromkeys(errors, 1) | lines
    assert parse_verify(OUTPUT + OUTPUT, ERRORS) == dict.fromkeys(errors, 2) | lines
    assert parse_verify("Success, no errors or warnings detected\n", "") == {}


def test_what_has_no_summary_is_no_verdict() -> None:
    assert parse_verify("", "findmnt: unrecognized option '--verify'\n") is None
    assert parse_verify("", "") is None
