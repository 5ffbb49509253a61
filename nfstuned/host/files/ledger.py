"""Files that a command wrote, and its list of them: exactly these can be taken back, also after a kill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nfstuned.errors import ParseError
from nfstuned.host.files.installed import digest_at, missing_folders, put, sweep, take, take_folders
from nfstuned.host.image_root import ImageRoot
from nfstuned.model.files import Installed, Placement, Step, Work
from nfstuned.parse.etc.installed import digest, encoded, is_file, parse_installed, render_installed


class Ledger:
    """The list of files that a command wrote, kept in a file below a root."""

    def __init__(self, root: ImageRoot, path: str) -> None:
        self._root = root
        self._path = path

    def known(self) -> Installed:
        """Return what was written before. Raises ParseError for a list that is damaged, and OSError."""
        digest_now = digest_at(self._root, self._path)
        if digest_now is None:
            return Installed()
        if not is_file(digest_now):
            raise ParseError(self._root.path(self._path), 0, "is no regular file: move it away")
        return parse_installed(self._root.read(self._path), self._root.path(self._path))

    def digests(self, paths: Sequence[str], known: Installed) -> dict[str, str | None]:
        """Return the digest of each of these files, and of those in the list. Raises OSError."""
        return {path: digest_at(self._root, path) for path in (*paths, *known.digests)}

    def carry_out(self, work: Work, replaced: Mapping[str, str] | None = None) -> None:
        """Write and remove what is planned; `replaced` are texts that a removal puts back. Raises OSError.

        The list comes first, with what is there and what will be: a kill leaves no file that it does not
        name.
        """
        known, contents = work.known, work.contents
        self.tidy(known)
        written = [step.path for step in work.steps if step.step is Step.WRITE]
        after = {path: values for path, values in known.digests.items() if path in contents}
        after |= {path: (digest(contents[path]),) for path in written}
        during = {path: (*values, *known.digests.get(path, ())) for path, values in after.items()}
        missing = missing_folders(self._root, (*written, self._path))
        folders = tuple(dict.fromkeys((*known.folders, *missing)))
        texts = {**known.before, **(replaced or {})}
        self._keep(Installed({**known.digests, **during}, folders, texts))
        for path in written:
            put(self._root, path, contents[path], work.found[path])
        self._withdraw(work.steps, known, work.found)
        self._keep(Installed(after, folders, {path: text for path, text in texts.items() if path in after}))

    def take_back(
        self, steps: Sequence[Placement], known: Installed, before: Mapping[str, str | None]
    ) -> None:
        """Take back what is planned, then the list, and the folders that were made for them. Raises OSError.

        `before` are the digests that the plan was made with.

        The list goes last but for its own folders: a kill leaves nothing that it does not name.
        """
        self._withdraw(steps, known, before)
        self.tidy(known)
        take_folders(self._root, known.folders)
        take(self._root, self._path)
        take_folders(self._root, known.folders)

    def tidy(self, known: Installed) -> None:
        """Remove what a kill left beside the files that were to be written. Raises OSError."""
        for path in (*known.digests, self._path):
            sweep(self._root, path)

    def _withdraw(
        self, steps: Sequence[Placement], known: Installed, before: Mapping[str, str | None]
    ) -> None:
        for step in steps:
            if step.step is not Step.REMOVE:
                continue
            text = known.before.get(step.path)
            if text is None:
                take(self._root, step.path)
            else:
                put(self._root, step.path, encoded(text), before[step.path])

    def _keep(self, installed: Installed) -> None:
        text = render_installed(installed).encode()
        put(self._root, self._path, text, digest_at(self._root, self._path))
