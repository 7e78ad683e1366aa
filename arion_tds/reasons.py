"""The class of a rejection's reason, for counting: few enough for a metric's label, each with something else to do.

In: the sentence that a NACK says. Out: one word. Pure. Called by observing.
"""

from __future__ import annotations

import re
from typing import Final

CLASSES: Final[dict[str, str]] = {
    "owner": "another owner has the namespace, or another tool the name",
    "upstream": "an MCP server could not be asked for its tools",
    "schema": "a schema is not one",
    "template": "a template does not compile",
    "document": "an OpenAPI document cannot be used",
    "name": "a name cannot be served",
    "rbac": "permissions that say nothing",
    "data_source": "a DataSource is empty, unreadable or not allowed",
    "unsupported": "something that the gateway does not support",
    "limit": "something is larger than a limit allows",
    "payload": "bytes or fields that break a rule",
}
"""Class: what it means. What fits none of the others is `payload`."""

_SIGNS: Final = (
    ("owner", r"is owned by|is taken|would (both )?be published|belongs to the gateway"),
    ("upstream", r"^MCP server "),
    (
        "data_source",
        r"DataSource|does not allow it|data_sources|filename|environment_variable|inline_(bytes|string)|is not UTF-8",
    ),
    ("template", r"template|\{\{|\}\}"),
    ("schema", r"schema"),
    ("limit", r"\bmax_\w+|too many|too large|longer than|larger than|more than"),
    ("unsupported", r"not supported|unsupported|is not served"),
    ("rbac", r"rbac|permission"),
    ("document", r"OpenAPI|/paths|operation|document"),
    ("name", r"\bname\b.*(character|dot|holds)|namespace.*(empty|must)|^name "),
)
_COMPILED: Final = tuple((name, re.compile(signs)) for name, signs in _SIGNS)
_LOOKED_AT: Final = 500
"""Characters of a reason that are looked at: what is wrong stands at its beginning."""


def classify(reason: str) -> str:
    """One of `CLASSES`."""
    text = reason[:_LOOKED_AT]
    return next((name for name, signs in _COMPILED if signs.search(text)), "payload")
