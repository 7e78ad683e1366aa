"""Text of a third-party document on its way to a model: no control or bidi characters, and not too much of it.

In: any value that should be text. Out: clean text. Called by schemas and operations.
"""

from __future__ import annotations

import re

# C0 and C1 controls except tab and newline, zero-width and bidi marks, line separators, BOM, tag characters,
# surrogates: what a reader does not see but a model does.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(value: object, limit: int) -> str:
    """The text without what cannot be seen, at most `limit` characters (cut at a word, with an ellipsis)."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if not text.isprintable() or len(text) > limit:
        text = _INVISIBLE.sub("", text).strip()
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    blank = cut.rfind(" ", limit // 2)
    return cut[: blank if blank > 0 else None].rstrip() + "…"
