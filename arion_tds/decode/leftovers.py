"""Fields that are set and not served: refused where that would change where traffic goes or how safe it is.

Called by the decoders of Envoy's own messages, which have many more fields than are served.
"""

from __future__ import annotations

from collections.abc import Collection

from google.protobuf.message import Message

from arion_tds.decode.case import Case


def judge(message: Message, path: str, served: Collection[str], ignored: Collection[str], case: Case) -> None:
    """Refuse each field of the message that is set and neither `served` nor `ignored`; warn of those ignored."""
    for field, _ in message.ListFields():
        where = f"{path}.{field.name}" if path else field.name
        if field.name in ignored:
            case.warn(where, "is not supported: ignored")
        elif field.name not in served:
            case.refuse(where, "is not supported, and the cluster would not be the same without it")
