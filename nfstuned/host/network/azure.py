"""What an Azure VM is told about itself.

https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from nfstuned.host.network.names import parallel

URL = "http://169.254.169.254/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text"
DEADLINE_S = 1.0
_SIZE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def vm_size(url: str = URL, seconds: float = DEADLINE_S) -> tuple[str | None, str]:
    """Return the VM's size ("Standard_D16_v4"), and why it could not be learned. It uses no proxy.

    The service answers on the machine's own host; its address is link-local and leaves no subnet.
    """
    answers = parallel({"size": lambda: _ask(url, seconds)}, seconds)
    size, problem = answers.get("size", (None, f"no answer within {seconds:g} s"))
    return size, f"VM size from Azure's metadata service: {problem}" if problem else ""


def _ask(url: str, seconds: float) -> tuple[str | None, str]:
    """Return the size, or None and why the service gave none."""
    import http.client  # noqa: PLC0415 - 30 ms that only an Azure VM pays

    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=seconds)
    try:
        connection.request("GET", f"{where.path}?{where.query}", headers={"Metadata": "true"})
        answer = connection.getresponse()
        text = answer.read(256).decode("ascii", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return None, str(error) or type(error).__name__
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        return None, f"status {answer.status}"
    return (text, "") if _SIZE.fullmatch(text) else (None, f"not a size: {text[:64]!r}")
