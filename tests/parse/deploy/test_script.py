"""The mounts of scripts: commands, lines for fstab and volumes, as people write them."""

from __future__ import annotations

import time
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Local, Maker, Misnamed, Request, Unexpanded
from nfstuned.parse.deploy.docker import docker_request
from nfstuned.parse.deploy.script import parse_command
from nfstuned.parse.deploy.written import script_requests
from tests.parse.damage import any_text, damaged
from tests.parse.rows import shown

FILE = "setup.sh"
BOARD = """\
#!/bin/sh
# Mount the lab's share on the board, if it is not yet there.
if ! grep -qs '/mnt/lab ' /proc/mounts; then
    mount -o nolock -t nfs 141.20.24.99:/home/mueller/fpga/pub /mnt/lab
fi
"""
SHARE = "//teamstore7.file.core.windows.net/team-files"
AZURE = f"""\
if [ ! -f "/etc/smbcredentials/teamstore7.cred" ]; then
    sudo bash -c 'echo "password=<the account key>" >> /etc/smbcredentials/teamstore7.cred'
fi
sudo bash -c 'echo "{SHARE} /mnt/team cifs nofail,actimeo=30" >> /etc/fstab'
sudo mount -t cifs {SHARE} /mnt/team -o serverino,actimeo=30
"""
UNIT = """\
mount -t nfs -o proto=udp,vers=3  10.1.50.10:/mnt/incoming /mnt/incoming

echo "10.1.50.10:/mnt/incoming /mnt/incoming nfs rw,vers=3 0" >>/etc/fstab
echo "[Mount]
What=10.1.50.10:/mnt/incoming
Where=/mnt/incoming
Type=nfs" >> /etc/systemd/system/mnt-incoming.mount
"""
METRICS = """\
# the volume of the metrics

docker volume create \\
  --driver local \\
  --opt type=nfs \\
  --opt o=addr=10.1.0.100,nolock,rw \\
  --opt device=:/export/shared \\
  metrics
"""
WHOLE = BOARD + AZURE + METRICS
EXPANDED = "a command with a variable"
OPEN = "a text with an open quote"
SEVERAL = "a file that several commands write"


def read(text: str) -> list[object]:
    """Return the requests as line, source, point, type and options, and the line and text of all else."""
    rows: list[object] = []
    for row in script_requests(text, FILE):
        if isinstance(row, Request):
            rows.append((row.line, row.source, row.point, row.fstype, row.options))
        elif isinstance(row, Misnamed):
            rows.append((row.request.line, row.unit, row.name))
        elif not isinstance(row, Local):
            rows.append((row.line, row.text) if isinstance(row, Unexpanded) else str(row))
    return rows


def test_scripts_as_people_write_them() -> None:
    assert read(BOARD) == [(4, "141.20.24.99:/home/mueller/fpga/pub", "/mnt/lab", "nfs", "nolock")]
    assert read(AZURE) == [
        (4, SHARE, "/mnt/team", "cifs", "nofail,actimeo=30"),
        (5, SHARE, "/mnt/team", "cifs", "serverino,actimeo=30"),
    ]
    source, point = "10.1.50.10:/mnt/incoming", "/mnt/incoming"
    assert read(UNIT) == [
        (1, source, point, "nfs", "proto=udp,vers=3"),
        (3, source, point, "nfs", "rw,vers=3"),
        (5, source, point, "nfs", ""),
    ]
    assert read(METRICS) == [(6, "10.1.0.100:/export/shared", "", "nfs", "addr=10.1.0.100,nolock,rw")]


def test_a_request_has_its_maker_and_the_lines_of_its_parts() -> None:
    command = "sudo mount -t auto \\\n  -r -o hard,vers=3 \\\n  -o \\\n  bg \\\n  10.0.0.1:/a \\\n  /m\n"
    assert list(parse_command(command + METRICS, FILE, 7)) == [
        Request(
            *("10.0.0.1:/a", "/m", "ro,hard,vers=3,bg", FILE, 8),
            maker=Maker.COMMAND,
            named="auto",
            option_lines=(8, 8, 8, 10),
            source_line=11,
        ),
        Request(
            *("10.1.0.100:/export/shared", "", "addr=10.1.0.100,nolock,rw", FILE, 18),
            maker=Maker.DOCKER,
            field="the option o",
            source_line=19,
        ),
    ]
    (entry,) = script_requests("echo s:/a /m nfs >> /etc/fstab", FILE)
    assert entry == Request("s:/a", "/m", "", FILE, 1, maker=Maker.TASK)


@pytest.mark.parametrize(
    ("command", "fstype", "options"),
    [
        ("mount -tnfs4 -ohard,bg s:/a /m", "nfs4", "hard,bg"),
        ("mount --types=nfs --options hard s:/a /m -v -w", "nfs", "hard,rw"),
        ("mount -vfo hard s:/a -rt nfs /m", "nfs", "hard,ro"),
        ("mount -t nfs -- s:/a /m", "nfs", ""),
        ("mount 's:/a' \"/m\"", "nfs", ""),
        ("mount -t ext4,nfs s:/a /m 2>&1 >/dev/null", "nfs", ""),
        ("/sbin/mount.nfs4 s:/a /m -o nosuid", "nfs4", "nosuid"),
        ("-/bin/mount -t efs s:/a /m", "efs", ""),
        ("mount -t smb3 s:/a /m -o user=a\\ b,pass='c d'\"'e'\"", "smb3", "user=a b,pass=c d'e'"),
        ("mount -t nfs s:/a /m -o $'sec=sys'", "nfs", "sec=sys"),
        ("sudo -E -u root mount s:/a /m", "nfs", ""),
        ("LC_ALL=C doas timeout -k 5 10 nice -n5 env -i A=b mount s:/a /m", "nfs", ""),
        ("$SUDO mount s:/a /m", "nfs", ""),
        ("su - root -c 'mount s:/a /m'", "nfs", ""),
        ("bash -ec \"sh -c 'mount s:/a /m'\"", "nfs", ""),
        ("bash -s <<'E'\nmount s:/a /m\nE\n", "nfs", ""),
        ("ERROR=$(mount s:/a /m 2>&1 | grep ')') || exit", "nfs", ""),
        ("echo `mount s:/a /m`", "nfs", ""),
        ("ssh -i k -p 22 root@h mount -t nfs s:/a /m", "nfs", ""),
        ("ssh h 'sudo mount s:/a /m' < /dev/null", "nfs", ""),
        ("ssh h bash -s <<'E'\nmount s:/a /m\nE\n", "nfs", ""),
        ("ssh h <<'E'\nmount s:/a /m\nE\n", "nfs", ""),
        ("sshpass -p x ssh $OPTIONS root@h -p 22 'mount s:/a /m'", "nfs", ""),
        ("bash -s x <<'E'\nmount s:/a /m\nE\n", "nfs", ""),
        ("ssh h <<'E'\ncat fstab > /etc/fstab\ncat < b >> /etc/fstab\nmount s:/a /m\nE\n", "nfs", ""),
        ("echo mount s:/a /m | sudo sh", "nfs", ""),
        ("share() { mountpoint -q /m || mount s:/a /m; }", "nfs", ""),
        ("if ! (mount s:/a /m); then :; fi", "nfs", ""),
        ("while :; do mount s:/a /m&done", "nfs", ""),
        ("case $1 in nfs) mount s:/a /m;; esac", "nfs", ""),
        ("(( a = 1 << b )); mount s:/a /m # $x", "nfs", ""),
        ("cat <<E | grep -v '^it'\nit's\nE\nmount s:/a /m\r\n", "nfs", ""),
        ('echo ${a#"\'"} $# "$(echo "b")" <(c) >&2; mount s:/a /m', "nfs", ""),
    ],
)
def test_a_command_of_mount_in_its_forms(command: str, fstype: str, options: str) -> None:
    rows = [row for row in script_requests(command, FILE) if isinstance(row, Request)]
    assert [(row.source, row.point, row.fstype, row.options) for row in rows] == [
        ("s:/a", "/m", fstype, options)
    ]


@pytest.mark.parametrize(
    "command",
    [
        "mount /m",
        "mount -a -t nfs,nfs4",
        "mount -t nfs -o hard /m",
        "mount --bind /a /m",
        "mount -t ext4 /dev/sda1 /m",
        "mount $DISK /m",
        "mount s:/a /m now",
        "mount -o remount,ro s:/a /m",
        "umount s:/a /m",
        "# mount s:/a /m",
        "echo mount s:/a /m",
        "grep 'mount s:/a /m' x",
        "cat > x.sh <<E\nmount s:/a /m\nE",
        "docker run -v a:/a b",
        "docker volume create --opt type=tmpfs --opt device=tmpfs a",
        "docker volume create --opt type=nfs",
        "docker volume create --opt type=$TYPE --opt device=$DISK b",
        "bash mount.sh s:/a /m",
        "printf >> /etc/fstab",
        "printf '%s /m nfs " + "a" * 1000 + "\\n' " + "s:/a " * 100 + ">> /etc/fstab",
    ],
)
def test_a_command_that_asks_for_no_mount_from_a_server(command: str) -> None:
    assert read(command) == []


@pytest.mark.parametrize(
    "text",
    [
        "echo -n 's:/a /m nfs hard' | sudo tee -a /etc/fstab > /dev/null",
        'echo s:/a /m nfs hard >> "$ROOT/etc/fstab"',
        "echo -e 's:/a\\t/m\\tnfs\\thard' >> /mnt/etc/fstab",
        "printf 's:/a /m nfs hard\\n' > /etc/fstab",
        "printf '%s %s\\tnfs %s\\n' s:/a /m hard >> /etc/fstab",
        'sudo sh -c "echo \\"s:/a /m nfs hard\\" >> /etc/fstab"',
        "grep -q s:/a /etc/fstab || { echo 's:/a /m nfs hard'>>/etc/fstab; }",
        "tee -a /etc/fstab <<< 's:/a /m nfs hard'",
        "tee -a /etc/fstab >/dev/null <<E && echo done\ns:/a /m nfs hard\nE\n",
        "cat <<-'E' | sudo tee -a /etc/fstab\n\ts:/a /m nfs hard\n\tE\n",
        "cat <<E |\ns:/a /m nfs hard\nE\ntee -a /etc/fstab",
        'cat >>/etc/fstab <<A <<"B"\nA\ns:/a /m nfs hard',
    ],
)
def test_a_line_that_a_command_writes_into_fstab(text: str) -> None:
    assert [row[1:] for row in read(text) if isinstance(row, tuple)] == [("s:/a", "/m", "nfs", "hard")]


def test_each_written_line_has_its_own_line_in_the_script() -> None:
    document = "cat >> /etc/fstab <<EOF\n# shares\ns:/a /a nfs\n\n/dev/sda1 /b ext4\n//s/c /c cifs ro\nEOF\n"
    assert [row[:2] for row in read(document) if isinstance(row, tuple)] == [(3, "s:/a"), (6, "//s/c")]
    echo = "sudo bash -c '\necho \"\ns:/a /a nfs\ns:/b /b nfs\" >> /etc/fstab'\n"
    assert [row[:2] for row in read(echo) if isinstance(row, tuple)] == [(3, "s:/a"), (4, "s:/b")]
    repeated = "printf '%s\\n' \\\n  's:/a /a nfs' \\\n  's:/b /b nfs' >> /etc/fstab\n"
    assert [row[:2] for row in read(repeated) if isinstance(row, tuple)] == [(2, "s:/a"), (3, "s:/b")]
    escaped = 'echo -e "\\ns:/a /a nfs\\ns:/b /b nfs\\\n,v3" >> /etc/fstab\n'
    assert [row[:2] for row in read(escaped) if isinstance(row, tuple)] == [(1, "s:/a"), (1, "s:/b")]


def test_only_a_line_for_a_server_is_an_error() -> None:
    text = "\n".join(
        f"echo '{line}' >> /etc/fstab" for line in ("a", "/dev/sdb nowhere", "s:/a nfs", "x y nfs z")
    )
    lines = [row.line for row in script_requests(text, FILE) if isinstance(row, ParseError)]
    assert (lines, len(read(text))) == ([3, 4], 2)
    assert shown(script_requests("echo 's:/a nfs hard' >> /etc/fstab", FILE)) == [
        "setup.sh:1: no mount point between 's:/a' and the type nfs: is a blank missing?"
    ]


@pytest.mark.parametrize(
    "command",
    [
        "mount -t nfs $FILER:/a /m",
        'mount -t nfs "${FILER}:/a" /m',
        "mount $(filer):/a /m",
        "mount `filer`:/a /m",
        "mount -t nfs -o $OPTIONS s:/a /m",
        "mount -t $TYPE s:/a /m",
        "mount $OPTIONS s:/a /m",
        "mount -t nfs $PLACES",
        "mount -t nfs {{ filer }}:/a /m",
        "mount -t cifs //<server>/share /m",
        "bash -c \"mount -t nfs '$FILER:/a' /m\"",
        'echo "$FILER:/a /m nfs hard\nsecond:/b $POINT nfs" >> /etc/fstab',
        "echo '{{ filer }}:/a /m nfs' >> /etc/fstab",
        "cat >> /etc/fstab <<E\ns:/a $POINT nfs\nE",
        "docker volume create --opt type=nfs --opt o=addr=$FILER,rw --opt device=:/a b",
        "podman volume create -o type=$TYPE -o device=s:/a b",
    ],
)
def test_a_command_with_an_expansion_is_named_once(command: str) -> None:
    assert read("\n" + command) == [(3 if "cat" in command else 2, EXPANDED)]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("mount s:/a /m -o 'password=a$b'", "password=a$b"),
        ('mount s:/a /m -o "password=a\\$b,c\\d,$"', "password=a$b,c\\d,$"),
        ("cat >> /etc/fstab <<'E'\ns:/a /m nfs password=a$b`\nE", "password=a$b`"),
        ("cat >> /etc/fstab <<E\ns:/a /m nfs password=a\\$b\\c\nE", "password=a$b\\c"),
    ],
)
def test_a_dollar_in_quotes_is_no_expansion(command: str, options: str) -> None:
    assert [row[-1] for row in read(command) if isinstance(row, tuple)] == [options]


MOUNT_UNIT = "[Mount]\nWhat=s:/a\nWhere=/mnt/a\nType=nfs\nOptions=soft\n"
AT = "/etc/systemd/system/mnt-a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"cat > {AT}.mount <<E\n{MOUNT_UNIT}E", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (f"sudo bash -c 'cat <<E | tee {AT}.mount\n{MOUNT_UNIT}E'", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (
            f"printf '[Mount]\\nWhat=%s\\nType=nfs\\n' \\\ns:/a > {AT}.mount",
            [(1, "s:/a", "/mnt/a", "nfs", "")],
        ),
        (f"cat > {AT}.service <<E\n[Service]\nExecStart=mount s:/a /m\nE", [(3, "s:/a", "/m", "nfs", "")]),
        (f"cat > {AT}-b.mount <<E\n{MOUNT_UNIT}E", [(6, f"{AT}-b.mount", "mnt-a.mount")]),
        (f"cat > nas.mount <<E\n{MOUNT_UNIT}E", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (f"\ncat > {AT}.mount <<E\n{MOUNT_UNIT.replace('s:', '$S:')}E", [(3, EXPANDED)]),
        (f"\ncat > {AT}.mount <<E\n{MOUNT_UNIT.replace('mnt', '$M')}E", [(3, EXPANDED)]),
        (f"\ncat > /etc/systemd/system/$M.mount <<E\n{MOUNT_UNIT}E", [(3, EXPANDED)]),
        (f"cat > $ROOT{AT}.mount <<E\n{MOUNT_UNIT}E", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (f"sudo bash -c 'cat > {AT}.mount' <<E\n{MOUNT_UNIT}E", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (f"cat <<E | ssh h sudo tee {AT}.mount\n{MOUNT_UNIT}E", [(6, "s:/a", "/mnt/a", "nfs", "soft")]),
        (
            f"ssh h 'mkdir -p b && cat > {AT}.mount' <<E\n{MOUNT_UNIT}E",
            [(6, "s:/a", "/mnt/a", "nfs", "soft")],
        ),
        (
            f"ssh h <<'E'\nsudo su\ncat > {AT}.mount <<F\n{MOUNT_UNIT}F\nE",
            [(8, "s:/a", "/mnt/a", "nfs", "soft")],
        ),
        (
            "cat > a.service.d/b.conf <<E\n[Service]\nExecStartPre=mount s:/a /m\nE",
            [(3, "s:/a", "/m", "nfs", "")],
        ),
        ("cat > a.mount.d/b.conf <<E\n[Mount]\nWhat=s:/a\nType=nfs\nE", [(3, "s:/a", "/a", "nfs", "")]),
        (f"cat > $UNIT <<E\n{MOUNT_UNIT}E", [(2, EXPANDED)]),
        (f"cat > /etc/systemd/system/{{a,b}}.mount <<E\n{MOUNT_UNIT}E", [(2, EXPANDED)]),
        (
            f"cat > {AT}.mount <<E\n{MOUNT_UNIT.replace('/mnt/a', 'POINT')}E",
            [(6, "s:/a", "/mnt/a", "nfs", "soft")],
        ),
        (
            f"cat > {AT}.mount <<E\n{MOUNT_UNIT}E\ncat > {AT}.mount.d/b.conf <<E\n[Mount]\nOptions=hard\nE",
            [(10, "s:/a", "/mnt/a", "nfs", "hard")],
        ),
        (
            f"cat > {AT}.mount <<E\n{MOUNT_UNIT}Option=ro\nE",
            [
                "setup.sh:7: systemd ignores Option= in [Mount]: write Options=",
                (6, "s:/a", "/mnt/a", "nfs", "soft"),
            ],
        ),
        (f"cat > {AT}@.service <<E\n[Service]\nExecStart=mount s:/%i /m\nE", [(3, EXPANDED)]),
        (f"cat > {AT}.mount <<E\n[Mount]\nWhat=/dev/$D\nType=ext4\nE", []),
        (
            f"echo [Mount] > {AT}.mount\necho What=s:/a >> {AT}.mount\necho Type=nfs >> {AT}.mount",
            [(1, SEVERAL)],
        ),
    ],
)
def test_units_that_commands_write(text: str, expected: list[object]) -> None:
    assert read(text) == expected


def test_an_automount_unit_of_a_script_counts_for_its_mount_unit() -> None:
    text = f"cat > {AT}.mount <<E\n{MOUNT_UNIT}E\ncat > {AT}.automount <<E\n[Automount]\nWhere=/mnt/a\nE\n"
    assert [row.maker for row in script_requests(text, FILE) if isinstance(row, Request)] == [Maker.AUTOMOUNT]


PV = "kind: PersistentVolume\napiVersion: v1\nspec:\n  mountOptions: [soft]\n  nfs: {server: s, path: /a}\n"
COMPOSE = "volumes: {b: {driver_opts: {type: nfs, o: 'addr=s,soft', device: ':/a'}}}\n"
BY_PV = (6, "s:/a", "", "nfs", "soft")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"kubectl apply -f - <<E\n{PV}E", [BY_PV]),
        (f"cat <<E | sudo k3s kubectl create --filename=- -n x\n{PV}E", [BY_PV]),
        (f"envsubst <<-E | oc apply -f- \n{indent(PV, chr(9))}\tE", [BY_PV]),
        (f"cat > a.yml <<E\n{PV}E\nkubectl apply -f a.yml", [BY_PV]),
        (f"cat > compose.yaml <<E\n{COMPOSE}E", [(2, "s:/a", "", "nfs", "addr=s,soft")]),
        (
            f"kubectl apply -f - <<E\n{PV.replace('server: s', 'server: ${S}')}E",
            [(6, "<variable>:/a", "", "nfs", "soft")],
        ),
        (f"kubectl apply -f - <<E\n{PV}  nfs: [\nE", [(8, "a text that is no YAML")]),
        (f"kubectl delete -f - <<E\n{PV}E\ncat <<E\n{PV}E", []),
        (f"echo '{PV}' | microk8s.kubectl apply -f -", [(5, "s:/a", "", "nfs", "soft")]),
        (f"cat > $FILE <<E\n{PV}E", [BY_PV]),
        (f"cat <<E | envsubst | kubectl apply -f -\n{PV}E", [BY_PV]),
        (
            f"kubectl apply -f - <<E\n{PV.replace('soft', 'vers=$1,rsize=$((1 * 2))')}E",
            [(6, "s:/a", "", "nfs", "vers=<variable>,rsize=<variable>")],
        ),
        (
            f"kubectl apply -f - <<E\n{PV.replace('server: s', 'server: {{ s }}')}E",
            [(6, "<variable>:/a", "", "nfs", "soft")],
        ),
        (f"if a; then cat > a.yml <<E\n{PV}E\nelse cat > a.yml <<E\n{PV}E\nfi", [(2, SEVERAL)]),
        ("kubectl apply -f - <<E\na: [mount\nE", []),
        (f"bash <<'E'\necho \\\n a\nkubectl apply -f - <<F\n{PV}F\nE", [(9, "s:/a", "", "nfs", "soft")]),
    ],
)
def test_manifests_that_commands_write(text: str, expected: list[object]) -> None:
    assert read(text) == expected


def test_other_machines_and_alternatives_are_not_compared() -> None:
    text = f"ssh a mount \\\n s:/a /m\nssh b 'mount s:/a /m'\ncat > {AT}.mount <<E\n{MOUNT_UNIT}E\n"
    text += f"kubectl apply -f - <<E\n{PV}E\nkubectl apply -f - <<E\n{PV}E\n"
    rows = [row for row in script_requests(text, FILE) if isinstance(row, Request)]
    assert [(row.line, row.source_line, row.group) for row in rows] == [
        (1, 2, f"{FILE}:1"),
        (3, 0, f"{FILE}:3"),
        (16, 16, ""),
        (23, 23, f"{FILE}:19"),
        (9, 6, ""),
    ]


def test_a_units_source_has_its_line_where_a_drop_in_has_the_options() -> None:
    drop_in = f"mkdir {AT}.mount.d\ncat > {AT}.mount.d/x.conf <<E\n[Mount]\nOptions=ro\nE\n"
    text = f"cat > {AT}.mount <<E\n{MOUNT_UNIT}E\n{drop_in}"
    (row,) = script_requests(text, FILE)
    assert isinstance(row, Request)
    assert (row.line, row.source_place) == (11, f"{FILE}:3")


def volume(text: str) -> list[tuple[Maker, int, str, str, str]]:
    rows = [row for row in script_requests(text, FILE) if isinstance(row, Request)]
    return [(row.maker, row.line, row.source, row.fstype, row.options) for row in rows]


def test_volumes_of_commands() -> None:
    assert volume("docker volume create -d local -o type=nfs4 -o=device=:/a --opt=o=addr=fd00::1 b") == [
        (Maker.DOCKER, 1, "[fd00::1]:/a", "nfs4", "addr=fd00::1")
    ]
    assert volume("sudo podman volume create --opt type=nfs --opt o=hard --opt device=s:/a b") == [
        (Maker.PODMAN, 1, "s:/a", "nfs", "hard")
    ]
    local = "type=volume,src=b,dst=/b,volume-driver=local,volume-opt=type=nfs,volume-opt=device=:/a"
    csv = f"docker run -d \\\n--mount '{local},\"volume-opt=o=addr=s,rw\"' \\\n--mount={local} image\n"
    assert volume(csv) == [(Maker.DOCKER, 2, "s:/a", "nfs", "addr=s,rw"), (Maker.DOCKER, 3, ":/a", "nfs", "")]


@pytest.mark.parametrize(
    ("fstype", "device", "o", "expected"),
    [
        ("nfs", "s:/a", "addr=t,rw", ("s:/a", "addr=t,rw")),
        ("nfs", "/a", " addr=t, rw # soft ", ("/a", " addr=t, rw # soft ")),
        ("nfs", ":/a", "addr=${NAS:-10.0.0.1},rw", ("${NAS:-10.0.0.1}:/a", "addr=${NAS:-10.0.0.1},rw")),
        ("cifs", "//s/a", "addr=s,user=b", ("//s/a", "addr=s,user=b")),
    ],
)
def test_the_address_of_a_volume(fstype: str, device: str, o: str, expected: tuple[str, str]) -> None:
    opts = {"type": (fstype, 1), "device": (device, 2), "o": (o, 3)}
    rows = [row for row in docker_request(opts, FILE) if isinstance(row, Request)]
    assert [(row.source, row.options) for row in rows] == [expected]
    assert [row.line for row in docker_request({**opts, "o": ("", 2)}, FILE)] == [2]
    assert list(docker_request({**opts, "type": ("${TYPE}", 1)}, FILE)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('mount s:/a /m\necho "it\n', [1]),
        ("mount s:/a /m\n\necho 'it\nmount s:/b /m\n", [1, (3, OPEN)]),
        ("echo ${a\ncat > /etc/fstab", [(1, OPEN)]),
        ("echo $(a 'b)\nmount x", [(1, OPEN)]),
        ("echo `a\nmount x", [(1, OPEN)]),
        ("cat <<E\n`it's\nE\nmount s:/a /m", [4]),
    ],
)
def test_an_open_quote_ends_the_reading(text: str, expected: list[object]) -> None:
    rows = [row for row in read(text) if isinstance(row, tuple)]
    assert [row if row[1] == OPEN else row[0] for row in rows] == expected


@pytest.mark.parametrize(
    "start", ["mount ", "cat > a.mount <<E\n[Mount]\nWhat=s:/a\nWhere=/", "kubectl apply -f - <<E\nvolume: "]
)
@pytest.mark.parametrize(
    "piece",
    [
        "'",
        '"',
        '""',
        "$(",
        "$(a)",
        "${",
        "`",
        "(",
        "<<a ",
        "<<a\na\n",
        "a ",
        "a;",
        "|",
        "{{",
        "<a",
        "\\",
        "$'\\'",
        " ",
        "%n",
    ],
)
def test_long_texts_take_no_longer_than_their_length(start: str, piece: str) -> None:
    began = time.process_time()
    list(script_requests(start + piece * (20_000 // len(piece)), FILE))
    assert time.process_time() - began < 1


def test_a_text_is_followed_through_a_few_pipes() -> None:
    line = "s:/a /m nfs\n"
    assert len(read(f"cat <<E {'| tee /etc/fstab ' * 1000}\n{line}E\n")) == 10


def test_commands_in_commands_end_at_a_depth() -> None:
    deep = "$(" * 5000 + "mount s:/a /m" + ")" * 5000
    assert (read(deep), read("bash -c " * 5000 + "'mount s:/a /m'")) == ([], [])


_PIECES = st.sampled_from(
    [
        *("mount ", "s:/a ", "echo ", "printf ", ">>/etc/fstab", ">a.mount", "[Mount]\n", "What=s:/a\n"),
        *("Type=nfs\n", "Where=/b\n", "<<E\n", "E\n", "\\\n", *"'\"`$({})|;&#\n\\ -"),
    ]
)


@given(st.one_of(damaged(WHOLE), any_text.map("mount ".__add__), st.lists(_PIECES, max_size=40).map("".join)))
def test_any_text_is_read_and_each_row_has_a_line_of_it(text: str) -> None:
    rows = list(script_requests(text, FILE))
    places = [row.request if isinstance(row, (Local, Misnamed)) else row for row in rows]
    assert all(1 <= place.line <= text.count("\n") + 1 for place in places)
