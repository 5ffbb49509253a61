from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.mounts import MapSource
from nfstuned.parse.etc.automaps import STATUSES, parse_automount, starts_autofs

# of RHEL 8's authselect profile "sssd"
RHEL_8 = "passwd:     sss files systemd\nnetgroup:   sss files\nautomount:  sss files\nservices:   sss\n"
FILES = MapSource("files")


def test_sources_are_in_the_order_in_which_they_are_asked() -> None:
    assert parse_automount(RHEL_8) == ((MapSource("sss"), FILES), 3)
    assert parse_automount("AutoMount:files\tnis\r\n") == ((FILES, MapSource("nis")), 1)


@pytest.mark.parametrize("text", ["", "passwd: files sss\n", "# automount: sss\n", " automount: sss\n"])
def test_without_a_line_there_are_files(text: str) -> None:
    assert parse_automount(text) == ((FILES,), 0)


def test_other_sources_are_passed_over_and_a_comment_is_not() -> None:
    assert parse_automount("automount: db files # ldap, too\n") == ((FILES,), 1)
    assert parse_automount("automount: sss # files\n") == ((MapSource("sss"), FILES), 1)


@pytest.mark.parametrize(
    ("actions", "ends"),
    [
        ("[NOTFOUND=return]", {"SUCCESS", "NOTFOUND"}),
        ("[ notfound = Return  UNAVAIL=return ]", {"SUCCESS", "NOTFOUND", "UNAVAIL"}),
        ("[SUCCESS=continue]", set()),
        ("[!SUCCESS=return]", set(STATUSES)),
        ("[!UNAVAIL=return]", set(STATUSES)),
        ("[TRYAGAIN=continue]", {"SUCCESS"}),
    ],
)
def test_actions_say_which_answers_end_the_search(actions: str, ends: set[str]) -> None:
    found = ((MapSource("sss", frozenset(ends)), FILES), 1)
    assert parse_automount(f"automount: sss {actions} files") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "1: automount(8) takes no map from this source"),
        (" db compat\n", "1: automount(8) takes no map from this source"),
        (" files [NOTFOUND=stop] nis\n", "1: automount(8) does not understand '[NOTFOUND=stop]'"),
        (" files [NOTFOUND=return\n", "1: automount(8) does not understand '[NOTFOUND=return'"),
        (" files []\n", "1: automount(8) does not understand '[]'"),
        (" [NOTFOUND=return] files\n", "1: automount(8) does not understand '[NOTFOUND=return]'"),
        (" files\n\nautomount: a", "3: a second line for automount: automount(8) reads neither"),
    ],
)
def test_a_line_that_automount_does_not_take_is_located(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_automount(f"automount:{text}")
    assert str(error.value) == f"/etc/nsswitch.conf:{message}"


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("[sssd]\nservices = nss, pam, autofs\n", True),
        ("[ sssd ]\nservices = nss,\n  autofs, pam\n", True),
        ("[sssd]\nservices =\n # nss,\n\tpam, autofs\n", True),
        ("[sssd]\n  services = autofs\n", True),
        ("[sssd]\nservices = nss, pam\ndomains = autofs.example.com\n", False),
        ("[sssd]\nservices = nss, pam\n[domain/x]\nautofs_provider = ad\n", False),
        ("[sssd]\n# services = autofs\n;services = autofs\n[autofs]\nservices = autofs\n", False),
        ("", False),
    ],
)
def test_sssd_answers_automount_where_it_is_told_to(text: str, *, starts: bool) -> None:
    assert starts_autofs(text) is starts
