"""Ansible's tasks and variables, in the forms in which people write them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.model.mounts import Local, Maker, Misnamed, Request, Unexpanded
from nfstuned.parse.deploy.ansible import (
    MOST_ITEMS,
    MOST_STEPS,
    PlayFile,
    ansible_requests,
    is_ansible,
    is_variables_path,
)
from nfstuned.parse.deploy.deployment import Found
from nfstuned.parse.yaml import Node, parse_documents

CORPUS = (Path(__file__).parents[2] / "data/corpus/others.txt").read_text()
CASES = {
    name: (re.findall(r"\w+ (\S+:[0-9]+)(?:;|$)", head.split("verdict: ")[1].split("\n")[0]), files)
    for name, head, *files in (
        re.split(r" ansible\n|^--- ", case, flags=re.MULTILINE)
        for case in re.split(r"^=== ", CORPUS, flags=re.MULTILINE)
        if re.match(r"\S+ ansible\n", case)
    )
}
"""By name: the places of the verdict, and the files, each a text behind its name."""


def rows(*files: tuple[str, str]) -> list[Found]:
    return list(ansible_requests([PlayFile(file, parse_documents(text, file)) for file, text in files]))


def of_corpus(name: str) -> list[Found]:
    return rows(*((file, text) for file, _, text in (each.partition("\n") for each in CASES[name][1])))


def short(found: list[Found]) -> list[str]:
    """Return each row's place, and of a request its source and options."""
    return [
        f"{row.file}:{row.line}" + (f" {row.source} {row.options}" if isinstance(row, Request) else " ?")
        for row in found
        if not isinstance(row, (Local, Misnamed))
    ]


def of_task(arguments: str, variables: str = "{}") -> list[Found]:
    """Return the rows of a task with these arguments, on line 3 of the file, and of variables on line 1."""
    mount = f"{{src: 'nas:/a', path: /a, fstype: nfs, state: mounted, {arguments}}}"
    block = f"- vars: {variables}\n  block:\n  - ansible.posix.mount: {mount}\n"
    return rows(("f", block))


def options(found: list[Found]) -> list[str]:
    return [row.options if isinstance(row, Request) else "?" for row in found]


@pytest.mark.parametrize("name", CASES)
def test_every_place_of_a_verdict_has_a_request(name: str) -> None:
    places = {f"{row.file}:{row.line}" for row in of_corpus(name) if isinstance(row, Request)}
    assert places >= {*CASES[name][0]}


OFFSITE = "//{{ offsite_login }}.storage.example.org/backup "
OFFSITE += "user={{ offsite_login }},pass={{ offsite_secret }},iocharset=utf8,mfsymlinks"
UDP = "sync,nfsvers=3,proto=udp,x-systemd.automount"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "play-vars-role",
            ["mount-films.yml:11 10.1.20.90:/volume3/films vers=4.1,hard,nolock,tcp,intr"],
        ),
        ("play-defaults", ["mount-share.yml:27 filer5:/labshare defaults"]),
        ("role-joined-good", ["roles/share_client/tasks/main.yml:21 ?"]),
        (
            "role-default-and-list",
            [
                "group_vars/hypervisors.yml:6 boxnas:/volume2/vm-dumps rw,_netdev,hard,intr,vers=3,noatime",
                "roles/share_mounts/defaults/main.yml:18 boxnas:/volume2/vm-images rw,_netdev",
            ],
        ),
        (
            "udp-jinja",
            [
                f"roles/lab-client/tasks/main.yml:20 {{{{ lab_server }}}}:{{{{ dir_read }}}} ro,{UDP}",
                f"roles/lab-client/tasks/main.yml:28 {{{{ lab_server }}}}:{{{{ dir_write }}}} rw,{UDP}",
            ],
        ),
        (
            "storagebox",
            [f"roles/offsite/tasks/main.yml:16 {OFFSITE}"],
        ),
        ("free-form", ["roles/swarm-share/tasks/main.yml:13 10.1.1.225:/var/swarmshare defaults"]),
    ],
)
def test_a_request_stands_where_the_text_of_its_options_does(name: str, expected: list[str]) -> None:
    assert short(of_corpus(f"ansible-{name}")) == expected


def test_a_request_has_the_line_of_its_source_where_both_are_in_a_file() -> None:
    films, shares = of_corpus("ansible-play-vars-role"), of_corpus("ansible-azure-expressions")
    assert [row.source_line for row in films + shares if isinstance(row, Request)] == [9, 10, 18, 26]
    play = (
        "- hosts: a\n  vars_files: [vars/x.yml]\n  tasks:\n  - mount:\n"
        "      {src: '{{ s }}', path: /a, fstype: nfs, opts: ro}\n"
    )
    (joined,) = rows(("a.yml", play), ("vars/x.yml", "s: nas:/a\n"))
    assert joined == Request("nas:/a", "/a", "ro", "a.yml", 5, maker=Maker.TASK, field="opts", group="a.yml")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("- hosts: all\n  roles: [x]\n", True),
        ("- ansible.builtin.import_playbook: x.yml\n", True),
        ("- name: x\n  mount: {path: /a, state: absent}\n", True),
        ("- name: x\n  block: [{debug: {}}]\n", True),
        ("- name: x\n  community.general.zfs: {name: a}\n", True),
        ("- name: x\n  pacman: name=nfs-utils state=present\n", True),
        ("- name: x\n  pacman: {name: nfs-utils}\n  become: true\n", True),
        ("services: {a: {image: b}}\nvolumes: {v: {driver_opts: {type: nfs}}}\n", False),
        ("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]\n", False),
        ("on: push\njobs: {a: {steps: [{name: x, run: mount -a}]}}\n", False),
        ("#cloud-config\nmounts: [[nas:/a, /a, nfs]]\n", False),
        ("- op: replace\n  path: /spec\n  value: 1\n", False),
        ("- name: web\n  image: nginx\n  ports: [80]\n", False),
        ("- hosts\n- {hosts: all}\n", False),
        ("", False),
    ],
)
def test_a_list_of_plays_or_of_tasks_is_ansibles(text: str, *, known: bool) -> None:
    assert is_ansible(parse_documents(text, "f")) is known


def test_variables_are_known_by_their_folder() -> None:
    files = ("group_vars/all.yml", "a/host_vars/b/c.yml", "roles/r/defaults/main.yml", "vars/x.yaml")
    assert all(map(is_variables_path, files))
    assert not any(map(is_variables_path, ("vars", "vars.yml", "tasks/defaults", "my_vars/a.yml")))


PLAIN = Request("nas:/a", "/a", "", "f", 3, maker=Maker.TASK, field="opts", group="f")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("opts: ro", PLAIN._replace(options="ro")),
        ("state: present", PLAIN),
        ("state: ephemeral, boot: no", PLAIN._replace(maker=Maker.COMMAND)),
        ("state: '{{ x }}'", PLAIN),
        ("boot: no", PLAIN._replace(options="noauto")),
        ("opts: ro, boot: false", PLAIN._replace(options="ro,noauto")),
        ("fstype: nfs3, path: '{{ x }}'", PLAIN._replace(named="nfs3", point="{{ x }}")),
        ("fstype: '{{ x }}'", Unexpanded("a task with an expression", "f", 3)),
        ("src: '{{ x }}', fstype: '{{ x }}'", None),
        ("fstype: ext4, src: /dev/sda1", None),
        *((f"state: {state}", None) for state in ("absent", "absent_from_fstab", "unmounted", "remounted")),
    ],
)
def test_the_arguments_of_mount(arguments: str, expected: Found | None) -> None:
    assert of_task(arguments) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("{{ a }}", "{a: ro}", "ro"),
        ("{{a}},{{ b }}", "{a: ro, b: soft}", "ro,soft"),
        ("{{ a.b }}", "{a: {b: ro}}", "ro"),
        ("{{ a['b'].c }}", "{a: {b: {c: ro}}}", "ro"),
        ("{{- a -}}", "{a: '{{ b }},hard', b: ro}", "ro,hard"),
        ("{{ a }}", "{a: null}", ""),
        ("{{ a | default('ro') }}", "{}", "ro"),
        ('{{ a|d(b)|d("ro") }}', "{}", "ro"),
        ("{{ a.b | default(c) }}", "{a: {}, c: ro}", "ro"),
        ("timeo={{ a | default(50) }}", "{}", "timeo=50"),
        ("{{ a | default(omit) }}", "{}", ""),
        ("user={{ a }},ro", "{}", "user={{ a }},ro"),
        ("user={{ a }},ro", "{a: !vault x}", "user={{ a }},ro"),
        ("user={{ a | default('b', true) }}", "{}", "?"),
        ("ro,{{ a }}", "{}", "?"),
        ("{{ a }}", "{a: [ro, soft]}", "?"),
        ("{{ a }}", "{a: !vault x}", "?"),
        ("{{ a | join(',') }}", "{a: [ro, soft]}", "?"),
        ("{{ a ~ b }}", "{a: ro, b: soft}", "?"),
        ("{{ {'x': a}['x'] }}", "{a: ro}", "?"),
        ("{% if a %}ro{% endif %}", "{a: ro}", "?"),
        ("{{ a }}", "{a: '{{ b }}', b: '{{ a }}'}", "?"),
    ],
)  # fmt: skip
def test_names_with_literals_are_expanded_and_other_expressions_are_not_read(
    text: str, variables: str, expected: str
) -> None:
    quoted = text.replace("'", "''")
    assert options(of_task(f"opts: '{quoted}'", variables)) == [expected]


MOUNT = "mount: {src: 'nas:/a', path: /a, fstype: nfs, opts: '{{ o }}'}"
PLAY = "- hosts: a\n  roles: [{role: c.d.r%s}]\n  vars: {o: play}\n"
COUNTING = [
    (
        "roles/r/tasks/main.yml",
        f"- {{vars: {{o: block}}, block: [{{vars: {{o: task}}, {MOUNT}}}]}}\n",
        "task",
    ),
    ("roles/r/tasks/main.yml", f"- {{vars: {{o: block}}, block: [{{{MOUNT}}}]}}\n", "block"),
    ("site.yml", PLAY % ", o: param", "param"),
    ("roles/r/vars/main.yml", "o: role\n", "role"),
    ("site.yml", PLAY % "" + "  vars_files: ['{{ playbook_dir }}/x.yml']\n", "file"),
    ("site.yml", PLAY % "", "play"),
    ("group_vars/b.yml", "o: group\n", "group"),
    ("group_vars/all.yml", "o: all\n", "all"),
    ("roles/r/defaults/main.yml", "o: default\n", "default"),
]
"""A file with a variable, and its value; the first counts most."""


@pytest.mark.parametrize("first", range(len(COUNTING)))
def test_the_variable_that_counts_most_is_taken(first: int) -> None:
    files = {"site.yml": "- hosts: a\n  roles: [r]\n", "x.yml": "o: file\n"}
    files["roles/r/tasks/main.yml"] = f"- {MOUNT}\n"
    files |= {file: text for file, text, _ in COUNTING[: first - 1 if first else None : -1]}
    assert options(rows(*files.items())) == [COUNTING[first][2]]


ITEMS = "- mount: {src: '{{ item.s }}', path: /a, fstype: nfs, opts: '{{ item.o | default(\"ro\") }}'}\n"


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("loop: [{s: 'n:/a', o: hard}, {s: 'n:/b'}]", ["f:2 n:/a hard", "f:1 n:/b ro"]),
        ("with_items: [[{s: 'n:/a', o: hard}], '{{ one }}']\n  vars: {one: {s: 'n:/b', o: rw}}",
         ["f:2 n:/a hard", "f:3 n:/b rw"]),
        ("loop: '{{ unknown }}'", ["f:1 ?"]),
        ("loop: '{{ none }}'\n  vars: {none: []}", ["f:1 ?"]),
        ("loop: '{{ known | dict2items }}'\n  vars: {known: {x: {s: 'n:/a'}}}", ["f:1 ?"]),
        ("loop: [{s: 'n:/a'}]\n  loop_control: {loop_var: x}", ["f:1 {{ item.s }} ro"]),
    ],
)  # fmt: skip
def test_a_loop_asks_once_for_each_item(loop: str, expected: list[str]) -> None:
    assert short(rows(("f", f"{ITEMS}  {loop}\n"))) == expected


def test_a_long_loop_is_bounded() -> None:
    loop = ", ".join(f"{{s: 'n:/{number}'}}" for number in range(MOST_ITEMS + 1))
    assert len(rows(("f", f"{ITEMS}  loop: [{loop}]\n"))) == MOST_ITEMS


def test_tasks_are_found_in_all_places_of_a_play_and_a_task_file_gets_the_variables_of_its_include() -> None:
    def task(number: int) -> str:
        return f"{{mount: {{src: 'n:/{number}', path: /, fstype: nfs, opts: '{{{{ o | d(0) }}}}'}}}}"

    play = (
        f"- hosts: a\n  pre_tasks: [{task(1)}]\n  post_tasks: [{{block: [], rescue: [{task(4)}]}}]\n"
        f"  handlers: [{{always: [{task(5)}]}}]\n  tasks:\n"
        "  - include_tasks: tasks/b.yml\n    vars: {o: ro}\n"
        "  - include_role: {name: r, tasks_from: two}\n    loop: [x, y]\n    loop_control: {loop_var: o}\n"
    )
    found = rows(
        ("p/a.yml", play),
        ("p/tasks/b.yml", f"- {task(2)}\n"),
        ("q/tasks/b.yml", f"- {task(6)}\n"),
        ("roles/r/tasks/two.yml", f"- {task(3)}\n"),
        ("roles/r/tasks/main.yml", f"- {task(7)}\n"),
    )
    asked = [f"{row.source} {row.options}" for row in found if isinstance(row, Request)]
    assert asked == ["n:/1 0", "n:/2 ro", "n:/3 x", "n:/3 y", "n:/4 0", "n:/5 0", "n:/6 0", "n:/7 0"]


BLOCK = """ansible.builtin.blockinfile:
    path: /etc/fstab
    block: |
      # ours
      n:/a /a nfs ro 0 0
      n:/b /b nfs ro x 0
"""
SCRIPT = """ansible.builtin.shell:
    cmd: |
      true
      mount -t nfs -o ro n:/a /a
"""


UNIT = """\
copy:
    dest: /etc/systemd/system/a.mount
    content: |
      [Mount]
      What=n:/a
      Type=nfs
      Options=ro
"""


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("lineinfile: dest=/etc/fstab line='n:/a /a nfs ro 0 0'", ["f:2 n:/a ro"]),
        ("lineinfile: {path: /etc/fstab, line: 'n:/a /a nfs {{ o }},ro 0 0'}", ["f:2 ?"]),
        ("lineinfile: {path: /etc/fstab, line: '{{ s }}:/a /a nfs ro 0 0'}", ["f:2 {{ s }}:/a ro"]),
        ("lineinfile: {path: /etc/fstab, line: '{{ s }}'}", []),
        (UNIT, ["f:8 n:/a ro"]),
        ("lineinfile: {path: /etc/systemd/system/a.mount, line: 'What=n:/a'}", []),
        ("lineinfile: {path: /etc/fstab, state: absent, line: 'n:/a /a nfs ro'}", []),
        ("lineinfile: {path: /etc/fstab, backrefs: yes, line: '\\1,ro nfs'}", []),
        ("lineinfile: {path: /etc/hosts, line: 'n:/a /a nfs ro 0 0'}", []),
        (BLOCK, ["f:6 n:/a ro", "f:7 ?"]),
        ("shell: mount -t nfs -o ro n:/a /a", ["f:2 n:/a ro"]),
        (SCRIPT, ["f:5 n:/a ro"]),
        (r'shell: "a\n\nmount -t nfs -o ro n:/a /a"', ["f:2 n:/a ro"]),
        ("command:\n    argv: [mount, -t, nfs, -o, ro, 'n:/a', /a]\n", ["f:3 n:/a ro"]),
        ("kubernetes.core.k8s: {definition: {spec: {nfs: {server: n, path: /a}}}}", ["f:2 n:/a "]),
    ],
)
def test_lines_of_fstab_and_commands(task: str, expected: list[str]) -> None:
    assert short(rows(("f", f"- name: x\n  {task}\n"))) == expected


def test_a_volume_of_docker_stands_where_its_options_do() -> None:
    volume = "{{driver_options: {{type: nfs, o: '{}', device: ':/a'}}}}"
    text = "- hosts: a\n  vars:\n    o: addr=10.1.2.3,soft\n  tasks:\n"
    text += "".join(f"  - docker_volume: {volume.format(o)}\n" for o in ("{{ o }}", "{{ p }}"))
    request, unread = rows(("f", text))
    assert isinstance(request, Request)
    assert (request.line, "soft" in request.options) == (3, True)
    assert unread == Unexpanded("a task with an expression", "f", 6)


def test_equal_requests_of_one_literal_are_one() -> None:
    same = "  - mount: {src: '{{ s }}', path: /a, fstype: nfs, opts: '{{ o }}'}\n"
    text = f"- vars: {{s: 'n:/a', o: ro}}\n  block:\n{same}{same}{same.replace('/a', '/b')}"
    assert short(rows(("f", text))) == ["f:1 n:/a ro"] * 2


def test_growth_without_end_is_bounded() -> None:
    names = "abcdefghijklm"
    grown = ", ".join(f"{name}: '{f'{{{{ {after} }}}}' * 9}'" for name, after in pairwise(names))
    assert options(of_task("opts: '{{ a }}'", f"{{{grown}, m: ro}}")) == ["?"]
    assert len(rows(("tasks/a.yml", "- include_tasks: a.yml\n- mount: {src: 'n:/a', fstype: nfs}\n"))) == 1
    node = Node(2, pairs={"name": Node(2, text="x")})
    for _ in range(18):
        node = Node(2, pairs={"block": Node(2, items=(node, node))})
    (error,) = ansible_requests([PlayFile("f", (Node(1, items=(node,)),))])
    message = f"this and all later tasks were not read: more than {MOST_STEPS} with those of loops"
    assert str(error) == f"f:2: {message}"


KEYS = (
    *("hosts", "tasks", "roles", "vars", "block", "mount", "loop", "src", "opts", "fstype", "path", "o"),
    *("name", "shell", "lineinfile", "line", "docker_volume", "driver_options", "include_tasks", "item"),
)
WORDS = ("nfs", "n:/a", "{{ item.o }}", "{{ a | d(b) }}", "{{", "{% x %}", "src=n:/a o='", "/etc/fstab", "")
texts = st.builds(Node, st.just(1), st.sampled_from(KEYS + WORDS), is_scalar=st.just(True))
nodes = st.recursive(
    texts,
    lambda parts: (
        st.builds(Node, st.just(1), items=st.lists(parts, max_size=4).map(tuple))
        | st.builds(Node, st.just(1), pairs=st.dictionaries(st.sampled_from(KEYS), parts, max_size=5))
    ),
    max_leaves=30,
)


@given(st.lists(st.tuples(st.sampled_from(["a.yml", "tasks/main.yml", "vars/main.yml", "nfs"]), nodes)))
def test_any_document_is_read(files: list[tuple[str, Node]]) -> None:
    found = ansible_requests([PlayFile(file, (node,)) for file, node in files])
    assert {row.line for row in found if not isinstance(row, (Local, Misnamed))} <= {1}
    assert {is_ansible((node,)) for _, node in files} <= {True, False}
