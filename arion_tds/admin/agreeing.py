"""Where several workers do not say the same of a name. Pure: answers in, answers with what others say out.

Each worker has a stream and upstreams of its own, so a change is a moment late at one of them, and a service may be
away from one alone. Called by admin.panel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mark(answers: list[dict[str, Any]], others: Mapping[int, list[dict[str, Any]] | None]) -> None:
    """Add `workers` to each answer (as `/explain` gives them) about which others say something else, or nothing.

    One that gives no answer stands there by its number alone. What is compared is the verdict and the version that it
    is about: in the sentences are times, and how often something was tried.
    """
    for one in answers:
        found: list[dict[str, Any]] = []
        for number, said in sorted(others.items()):
            if said is None:
                found.append({"worker": number})
            found += [
                {"worker": number, "state": other["state"], "summary": other["summary"]}
                for other in said or ()
                if other["scope"] == one["scope"] and _verdict(other) != _verdict(one)
            ]
        if found:
            one["workers"] = found


def _verdict(one: dict[str, Any]) -> tuple[object, object]:
    return one["state"], (one.get("origin") or {}).get("version")
