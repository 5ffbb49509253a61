"""Make a file that is not there yet: whoever looks, and whenever power fails, there is none or all of it."""

from __future__ import annotations

import os

from nfstuned.host.files.replace import locked, refusal
from nfstuned.host.files.whole import FOLDER_FOR_ALL, beside, link_name, opened_folder, write_new


def create(path: str, data: bytes, lock: str) -> str:
    """Make a file, and its folder where there is none; return what was in the way, "" where nothing was.

    The folder above must be there. `lock` is the file whose lock keeps others away who change files
    (files.replace). A file that somebody else made meanwhile stays as it is. A kill leaves no file or the
    whole file, and perhaps another that ends with ".nfstuned-new", which the next call takes away.
    """
    folder, name = os.path.split(path)
    try:
        with locked(lock):
            try:
                os.mkdir(folder, FOLDER_FOR_ALL)
            except FileExistsError:
                pass
            else:
                os.chmod(folder, FOLDER_FOR_ALL)
                with opened_folder(os.path.dirname(folder)) as above:
                    os.fsync(above)
            with opened_folder(folder) as place:
                try:
                    with beside(place, name) as new:
                        write_new(place, new, data)
                        link_name(place, new, name)
                except FileExistsError:
                    return f"{path} was made meanwhile: look again"
                try:
                    os.fsync(place)
                except OSError as error:
                    reason = os.strerror(error.errno or 0)
                    return f"{path} was made, but may not outlive a power failure: {reason}"
                return ""
    except BlockingIOError:
        return f"another nfstuned is changing a file: try again ({lock} is locked)"
    except OSError as error:
        return refusal(error, path, lock)
