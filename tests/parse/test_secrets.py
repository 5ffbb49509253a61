from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.parse.fields import MASK, masked, quoted

KEY = base64.b64encode(bytes(range(64))).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rw,password=hunter2,vers=3.0", "rw,password=****,vers=3.0"),
        ("pass=a,,b,rw", "pass=****,rw"),
        ("password=Pa,Ss4,w0rd!,rw,uid=0", "password=****,rw,uid=0"),
        ("password=x, which is no option", "password=****, which is no option"),
        ("Password2=x password = y", "Password2=**** password = ****"),
        ('passwd="a, b",rw', "passwd=****,rw"),
        ("password='it is',rw", "password=****,rw"),
        ('{"password": "a b", "x": 1}', '{"password": ****, "x": 1}'),
        ("username=u%hunter2,rw", "username=u%****,rw"),
        ("user=dom/u%hunter2", "user=dom/u%****"),
        ("//u:hunter2@h/s", "//u:****@h/s"),
        ("smb://u:h@nter2@h/s", "smb://u:****@h/s"),
        ("//u:hunt/er2@h/s", "//u:****@h/s"),
        ("//u%hunter2@h/s", "//u%****@h/s"),
        ("https://a.blob/x?sv=1&sig=ab%2Bc&se=2", "https://a.blob/x?sv=1&sig=****&se=2"),
        (f"AccountKey={KEY};x", "AccountKey=****"),
        (f"see {KEY}.", "see ****."),
        ("account_key=x", "account_key=****"),
        ("credentials=user:hunter2", "credentials=****"),
        ("token=t secret=s passphrase=p", "token=**** secret=**** passphrase=****"),
    ],
)
def test_secrets_are_masked_and_what_stands_around_them_stays(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("credentials=/etc/smb.cred", "cred=/etc/x", "sec=sys,rw,nconnect=4", "username=u,uid=0"),
        *("nas:/v@2026", "//h/s", "[fe80::1%eth0]:/v", "https://learn.microsoft.com/a?x=1", "passno: 0"),
        *("permission denied; no password: ask root", "s:/a=b", "fsck pass is not a number: 'x'"),
        *("sign=on", "design=1", "A" * 86),
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert masked(text) == text


@given(st.text(alphabet="pasword=,:/@%\"' *x\n&sig", max_size=60))
def test_a_text_that_is_masked_stays_as_it_is(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


def test_a_token_is_masked_before_it_is_cut_and_one_beside_a_secret_whole() -> None:
    text = "x" * 70 + ",password=hunter2hunter2hunter2"
    assert quoted(text) == ascii("x" * 70 + ",password=****"[:10]) + "..."
    assert quoted("word", "password=my") == ascii(MASK)
    assert quoted("word", "rw,hard") == "'word'"
