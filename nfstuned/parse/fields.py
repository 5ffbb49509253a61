"""The smallest pieces of every text: numbers, escapes, paths, words of a shell, and tokens without secrets.

`mask_secrets` changes each text for a person or a program: a token in a message (`quoted`), a name on a
terminal (`printable` of view/words.py), a string of a document, of a sample, of a metric's label or of a
journal entry. Text that is written back to a file is never masked.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Container, Iterable, Sequence
from functools import cache, lru_cache

from nfstuned import data
from nfstuned.model.kernel import Options, parse_options

RELOAD_UDEV = "udevadm control --reload"
RELOAD_UNITS = "systemctl daemon-reload"
LARGEST = 2**64 - 1
"""No kernel counter prints more; without a bound, a damaged line could cost time or overflow a float."""
_DIGITS = len(str(LARGEST))
_ESCAPES = re.compile(r"(?:\\(?!000)[0-3][0-7]{2})+")
_LIBMOUNTS = re.compile(r"(?:\\[0-7]{3})+")
_COUNTERS = re.compile(r"-?[0-9]{1,20}(?: -?[0-9]{1,20})* ?")
_LONG_COUNTERS = re.compile(_COUNTERS.pattern.replace("{1,20}", "+"))
_SHOWN = 80
_LOOKED_AT = 4096
"""Characters of a token that is far too long for a message: the shown part is among them."""


_REMARK = re.compile(r"(?<!\s)\s+#(?!\d)")


def without_remark(value: str) -> str:
    """Return a unit's value without a remark at its end, which systemd takes for a part of it."""
    return _REMARK.split(value)[0]


def quoted(token: str, line: str = "") -> str:
    """Return the token for a message: quoted, harmless to a terminal, and cut where it is too long.

    A backslash stays single: names of units have them.

    Secrets in it are masked; it is one itself where the `line` that it was split from holds any.
    """
    token = MASK if holds_secret(line) else mask_secrets(token[:_LOOKED_AT])
    shown = ascii(token[:_SHOWN]).replace("\\\\", "\\")
    return shown if len(token) <= _SHOWN else shown + "..."


def parse_number(name: str, token: str) -> int:
    """Return a decimal number from 0 to 2**64-1; ValueError has `name` and the token."""
    if not (token.isascii() and token.isdigit()):
        raise ValueError(f"{name} is not a number: {quoted(token)}")
    # Python converts no number of thousands of digits.
    if len(token) > _DIGITS or (value := int(token)) > LARGEST:
        raise ValueError(f"{name} does not fit 64 bits: {quoted(token)}")
    return value


def counters(name: str, text: str, least: int) -> list[int]:
    """Return numbers with a space between them, at least `least`; ValueError has the reason."""
    if not _COUNTERS.fullmatch(text):
        long = _LONG_COUNTERS.fullmatch(text)
        why = "does not fit 64 bits" if long else "holds something that is not a number"
        raise ValueError(f"{name} {why}: {quoted(text)}")
    values = list(map(int, text.split()))
    if len(values) < least:
        raise ValueError(f"{name} has {len(values)} numbers, at least {least} expected: {quoted(text)}")
    if max(values) > LARGEST:
        raise ValueError(f"{name} does not fit 64 bits: {quoted(text)}")
    return values


def unescape(text: str) -> str:
    r"""Decode octal escapes (`\040` for a space) of the kernel (fs/seq_file.c, mangle_path).

    Each escape is a byte; bytes in a row are decoded together, and stay surrogate escapes if not UTF-8. An
    escape that stands for no byte of a name, `\000` and from `\400` on, the kernel never writes: it stays as
    it is.
    """
    return _ESCAPES.sub(_decoded, text) if "\\" in text else text


def unmangle(text: str) -> str:
    r"""Decode a field of fstab or utab as libmount does (lib/mangle.c, unmangle_to_buffer).

    It takes any three octal digits and keeps eight bits of them; a byte that is 0 ends the field: `\000` and
    `\400`.
    """
    return _LIBMOUNTS.sub(_decoded, text).partition("\0")[0] if "\\" in text else text


def _decoded(escapes: re.Match[str]) -> str:
    codes = bytes(int(code, 8) & 0xFF for code in escapes[0].split("\\")[1:])
    return codes.decode("utf-8", "surrogateescape")


PLACEHOLDER = (
    r"\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|<[^<>]+>|__[A-Za-z0-9]\w*?__|@[A-Za-z_]+@"
    r"|\[[A-Z][A-Z0-9_]+\]"
)
"""The part of a template that another program replaces: {{ x }}, ${X}, $(x), $X, <x>, __X__, @X@, [X]."""
_IPV6 = r"[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%\w+)?"
_MARKS = ("{{", "$", "<", "__", "@", "[")


def octal_escapes(text: str) -> str:
    r"""Return a text in which each byte of a character that a terminal does not show is written as `\012`."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable()
        else "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in text
    )


def has_placeholder(text: str) -> bool:
    """Return whether a template's placeholder is in the text."""
    return any(mark in text for mark in _MARKS) and re.search(PLACEHOLDER, text) is not None


def split_options(text: str) -> list[str]:
    """Split options at their commas, but for those in a template's placeholders."""
    if not has_placeholder(text):
        return text.split(",")
    whole = re.sub(PLACEHOLDER, lambda match: match[0].replace(",", "\0"), text)
    return [part.replace("\0", ",") for part in whole.split(",")]


def with_brackets(server: str) -> str:
    """Return a server for the source of a mount: an IPv6 address in brackets."""
    return f"[{server}]" if re.fullmatch(_IPV6, server) else server


def is_placeholder(text: str) -> bool:
    """Return whether a text is a template's placeholder as a whole."""
    return re.fullmatch(PLACEHOLDER, text.strip()) is not None


def right_spelling(table: str, text: str) -> tuple[str, str] | None:
    """Return the text to write instead of a misspelt one, and the reason; None for any other text.

    `table` is of data/misspelt.toml: "types", "nfs-sources" or "smb-sources".
    """
    for row in data.read_table("misspelt.toml")[table]:
        match = re.fullmatch(row["pattern"], text, re.IGNORECASE)
        if match:
            return match.expand(row["right"]), row["why"]
    return None


def clean_path(path: str) -> str:
    """Return an absolute path without repeated slashes, `.` and `..`: it cannot leave the root."""
    return "/" + posixpath.normpath("/" + path).lstrip("/")


_MOST_PATH = 4096
"""PATH_MAX."""


def nearest_point(path: str, points: Container[str]) -> str:
    """Return the path or the nearest of its folders that is one of the points, "/" where none is."""
    path = path if len(path) <= _MOST_PATH else "/"
    while path not in points and path != "/":
        path = posixpath.dirname(path)
    return path


def unit_name(point: str) -> str:
    """Return the name of the mount unit of a path, as `systemd-escape --path --suffix=mount` prints it."""
    path = clean_path(point)[1:].encode("utf-8", "surrogateescape")
    escaped = re.sub(rb"\A\.|[^\w:./]", lambda match: b"\\x%02x" % match[0][0], path)
    return (escaped.replace(b"/", b"-").decode() or "-") + ".mount"


def count(number: int, noun: str) -> str:
    """Return "1 mount", "2 mounts"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are: "a, b, c and 2 more"."""
    shown = 3
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def below(path: str, points: Iterable[str]) -> bool:
    """Return whether a path is below any of the points; "/" does not count."""
    return any(path.startswith(point.rstrip("/") + "/") for point in points if point != "/")


_MOST_KEPT = 32


@lru_cache(_MOST_KEPT)
def parse_kernel_options(text: str) -> Options:
    """Return the options of a kernel file, where escapes stand for bytes: an escaped comma does not split.

    The mounts of a server have the same options, at each look again: they share a value.
    """
    options = parse_options(text)
    if "\\" not in text:
        return options
    return Options(tuple((unescape(name), value and unescape(value)) for name, value in options.pairs))


MASK = "****"
_NAME = (
    r"(?:pass(?:wd|phrase|(?:[ \t]|\\040){1,8}word)?|[as]{1,4}wor[dt]"
    r"|(?<![a-z])(?:pas{1,3}(?!no\b|ive|th)\w{0,6}|p(?:a?w|s[dsw])[asword0]{0,9})"
    r"|secret|token|(?:account|access|shared|storage)[_-]?key)[0-9]?"
)
"""With misspelt names of a password, and one with a blank in it."""
_IS = (
    r"[\"'}]?[ \t]{0,8}=[ \t]{0,8}|\"[ \t]{0,8}:[ \t]{0,8}|'[ \t]{0,8}:(?! (?-i:[a-z]+ [a-z]))[ \t]{0,8}"
    r"|:[ \t]{1,8}(?=[\"'])"
)
"""As options, units and TOML write it, and as JSON does; a colon in a sentence is not meant."""
_WORD = r"(?:,,|=\"[^\"]*(?:\"|\Z)|='[^']*(?:'|\Z)|[^,\s])+"
"""An option of a list: a comma that is doubled (mount.cifs(8)), or in quotes, does not end it."""
_MASKED = re.escape(MASK) + r"(?![^\s,'\")\]}&;])"
_FILE = r"[\"']?(?:~[\w-]*|\.{1,2}|\$\{?\w+\}?|%\w)?/|[\w.-]*(?:cred|smb|cifs)[\w.-]*(?:[,\s]|\Z)"
"""A name of a file with a login, with or without its folder."""
_HINTS = (
    *("pas", "swor", "paw", "pw", "psd", "pss", "psw", "secret", "token", "key", "cred", "sig", "user"),
    *("//", "==", "@"),
)
"""A text with none of these has no secret. Every text passes here, also the thousands of a sample."""


@cache
def load_secrets() -> tuple[str, str]:
    """Return the patterns of secrets, and of an option that may follow one. Raises OSError.

    They are made when a text may hold a secret, or when the service is ready: it starts without, and has no
    descriptor to read them by when it runs out of those.
    """
    tables = data.read_table("mount-options.toml")
    texts = [tables["common"]["names"], tables["smb"]["names"], *tables["smb"]["renamed"]]
    texts += [tables["nfs"][key] for key in ("names", "rare", "multipath", "aznfs")]
    texts += tables["smb"]["modes"]
    known = "|".join(re.escape(name).replace(r"\[no\]", "(?:no)?") for name in " ".join(texts).split())
    begins = r"(?<![^\s,'\"])"
    named = (
        rf"(?:{_NAME})(?:{_IS})|{begins}(?:{_NAME}):(?=[^\s/:])|{begins}(?:{_NAME}),(?=[^\s,])"
        # Without a sign between name and value. A longer name with a masked value stays as it is.
        rf"|(?!(?:{_NAME})(?:{_IS}|:[ \t]{{1,8}}|,)?{_MASKED})"
        r"(?:(?<![^,'\"])passw(?:or)?d2?(?!s\b)(?=[a-z013-9_+-]|\.\w)"
        r"|(?<=,)pass(?-i:(?=[A-Z3-9_+-])))"
    )
    secret = (
        rf"(?P<option>(?:{named}|\bcred(?:ential)?s?=(?!{_FILE})"
        rf"|\buser(?:name)?=[^,\s%:\"']{{0,256}}[%:])(?!{_MASKED}))"
        rf"(?:(?P<quoted>(?:\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|'[^']*(?:'|\Z))[^\s,'\")\]}}&;]*)"
        rf"|(?P<value>(?:,,|[^,\s])*))"
        # Behind quotes, another name in quotes is JSON.
        rf"(?P<rest>(?(quoted)(?:,(?![\"'{{]|{named}){_WORD})*|(?:,(?!{named}){_WORD})*))"
        rf"|(?P<signature>\bsig(?:nature)?=)(?!{_MASKED})[^&,\s\"']+"
        rf"|(?P<login>//[^\s/@:%]{{0,256}}[:%])(?!{re.escape(MASK)}@)(?:[^\s/\"']{{0,256}}|[^\s\"'@]{{0,256}})(?=@)"
        rf"|(?P<plain>(?<![^\s\"'=])[\w.-]{{1,64}}:)(?!{re.escape(MASK)}@)[^\s/@\"']{{1,256}}(?=@[\w.\[])"
        # The same in an automounter's map: behind the first colon of a location each other one is a slash.
        rf"|(?P<expanded>//[^\s/@:%]{{0,256}}/)(?!{re.escape(MASK)}@)[^\s/@\"']{{1,256}}(?=@[^\s/@]+/)"
        # A storage account's key: 64 bytes in base64.
        r"|(?<![A-Za-z0-9+])[A-Za-z0-9+/]{86}=="
    )
    return secret, rf"(?:(?:{known}|[xX]-[a-z.-]+)(?:=.*)?|{re.escape(MASK)})[\"')\]}}]*"


def mask_row(row: str) -> str:
    """Return a line of fstab without secrets.

    A blank in a password makes its rest look like a field: behind the options nothing is shown but numbers.
    Of a comment with a secret only its mark is shown, and of an unknown option of SMB no value.
    """
    text = row.lstrip("+- \t#")
    mark = row[: len(row) - len(text)]
    fields = re.match(r"((?:\S+\s+){2}(\S+)\s+)(\S+)(.*)", text)
    smb = fields and fields[2] in {"cifs", "smb", "smb3"}
    if not smb and not holds_secret(text):
        return row
    if "#" in mark:
        return mark + MASK
    if not fields:
        return mark + mask_secrets(text)
    words = mask_secrets(fields[3]).split(",")
    if smb:
        _, known = load_secrets()
        for place, word in enumerate(words):
            name, equals, _ = word.partition("=")
            if not re.fullmatch(known, word):
                words[place] = f"{name}={MASK}" if equals else MASK
    rest = re.sub(r"\S*[^\s\d]\S*", MASK, fields[4])
    return f"{mark}{mask_secrets(fields[1])}{','.join(words)}{rest}"


class Secretless(str):
    """A text without a secret, as its maker knows: it is of numbers, and of names that are masked."""

    __slots__ = ()


def mask_secrets(text: str) -> str:
    """Return the text with each secret in it as MASK; a text that is masked already stays as it is.

    A password may have commas: in the list of options behind it each word that is no known option is masked.
    """
    if is_secretless(text):
        return text
    secrets, option = load_secrets()

    def mask(match: re.Match[str]) -> str:
        value, rest, *before = match.group(
            "value", "rest", "option", "signature", "login", "plain", "expanded"
        )
        is_next = (before[0] or "").endswith(",") and value and re.fullmatch(option, value, re.DOTALL)
        words = [value if is_next or value == "" else MASK]
        for word in re.findall(f",({_WORD})", rest or ""):
            if re.fullmatch(option, word, re.DOTALL):
                words.append(mask_secrets(word))
            elif words == [""]:
                words = [MASK]
            elif words[-1] != MASK:
                words.append(MASK)
        return next(filter(None, before), "") + ",".join(words)

    return re.sub(secrets, mask, text, flags=re.IGNORECASE | re.DOTALL)


def is_secretless(text: str) -> bool:
    """Return whether there can be no secret in the text, nor in any part of it."""
    folded = text.casefold()
    for hint in _HINTS:  # noqa: SIM110 - every text comes here, and a generator takes as long as it all
        if hint in folded:
            return False
    return True


def holds_secret(text: str) -> bool:
    """Return whether there is a secret in the text: the text next to it may be a part of it.

    It may stand behind a colon with a blank, which is no sentence in a list of options, or behind a blank.
    """
    if is_secretless(text):
        return False
    before = rf"(?i)((?:^|,|\b(?:cifs|smb3)[ \t]+)(?:{_NAME}))[ \t]+(?=\S)"
    others = re.sub(r"[ \t]*:[ \t]*", ":", text), re.sub(before, r"\1=", text)
    return any(mask_secrets(each) != each for each in (text, *others))


def quote(text: str) -> str:
    r"""Return a text as one word of a shell.

    A character that a terminal does not show stands there as `$'\012'` has it (bash, ksh, zsh; POSIX since
    2024): else it would be shown as an escape that no shell reads, and the command would be about another
    file.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + octal_escapes(re.sub(r"[\\']", r"\\\g<0>", text)) + "'"


def shell_line(argv: Iterable[str]) -> str:
    """Return a command as a person types it."""
    return " ".join(map(quote, argv))


def sudo(program: str, *paths: str, folder: str) -> str:
    """Return a command about files below an image's folder, or of the host with ""."""
    return " ".join(("sudo", program, *(quote(folder + path) for path in paths)))


def then_sudo(program: str, *, image: bool, mark: str = ",") -> str:
    """Return the step that makes a running system read a change, after a mark; an image needs none."""
    return "" if image else f"{mark} then sudo {program}"
