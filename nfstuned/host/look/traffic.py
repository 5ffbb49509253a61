"""What interfaces carried between two looks."""

from __future__ import annotations

from nfstuned.host.network.links import byte_count
from nfstuned.host.root import Root
from nfstuned.model.facts import Traffic


def observe_traffic(root: Root, names: tuple[str, ...]) -> tuple[Traffic, ...]:
    """Return the byte counters of interfaces, since each came up; one that is gone is left out."""
    interfaces = []
    for name in names:
        received, sent = byte_count(root, name, "rx_bytes"), byte_count(root, name, "tx_bytes")
        if received is not None and sent is not None:
            interfaces.append(Traffic(name, received, sent))
    return tuple(interfaces)


def traffic_between(before: tuple[Traffic, ...], after: tuple[Traffic, ...]) -> tuple[Traffic, ...]:
    """Return what each interface carried; an interface that came, went or came again is left out."""
    first = {traffic.interface: traffic for traffic in before}
    interfaces = []
    for later in after:
        earlier = first.get(later.interface)
        if earlier and later.received >= earlier.received and later.sent >= earlier.sent:
            interfaces.append(
                Traffic(later.interface, later.received - earlier.received, later.sent - earlier.sent)
            )
    return tuple(interfaces)
