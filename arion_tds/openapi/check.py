"""What makes a whole document unusable, before any operation is looked at.

In: the decoded root. Out: its version, or every problem at once, each with its JSON Pointer. Called by expand.
What concerns one operation is judged when that operation is (and only if it was asked for).
"""

from __future__ import annotations

import re

from arion_tds.model import names
from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.openapi.refs import escape
from arion_tds.openapi.value import Json

_VERSION = re.compile(r"(3\.[0-2])(?:\.\d+)?(?:-[\w.]+)?\Z")
_PREFIX = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/\-]*\Z")
_NAMESPACE = re.compile(r"[\x21-\x7e]+\Z")
_MAX_NAMESPACE = 100


def version(root: dict[str, Json]) -> str | Problem:
    """`3.0`, `3.1` or `3.2`, or what to do about the document's version."""
    found = root.get("openapi")
    if "swagger" in root and found is None:
        return Problem("/swagger", "Swagger 2.0 is not supported: convert the document to OpenAPI 3 and push it again")
    if found is None:
        return Problem("", "there is no `openapi` version: an OpenAPI document starts with `openapi: 3.x.y`")
    match = _VERSION.match(str(found))
    if match is None:
        return Problem("/openapi", f"version {str(found)[:40]!r} is not supported: 3.0, 3.1 and 3.2 are")
    return match.group(1)


def document(root: dict[str, Json]) -> list[Problem]:
    """Everything that is wrong with the document as a whole."""
    sections = ("info", "paths", "components", "webhooks")
    found = [Problem(f"/{key}", "must be an object") for key in sections if not isinstance(root.get(key, {}), dict)]
    if not any(key in root for key in ("paths", "components", "webhooks")):
        found.append(Problem("", "there are neither paths nor components nor webhooks"))
    paths = root.get("paths")
    for path, item in paths.items() if isinstance(paths, dict) else ():
        if path.startswith("x-"):
            continue
        where = f"/paths/{escape(path)}"
        if not path.startswith("/"):
            found.append(Problem(where, "a path must begin with /"))
        elif not isinstance(item, dict):
            found.append(Problem(where, "a path item must be an object"))
        elif "parameters" in item and not isinstance(item["parameters"], list):
            found.append(Problem(f"{where}/parameters", "parameters must be a list"))
    return found


def source(given: OpenApiSource) -> list[Problem]:
    """What is wrong with the source beside its document."""
    found: list[Problem] = []
    if not _NAMESPACE.match(given.namespace) or len(given.namespace) > _MAX_NAMESPACE:
        why = names.problem(given.namespace) or f"must have 1 to {_MAX_NAMESPACE} visible ASCII characters"
        found.append(Problem("namespace", f"{given.namespace[:40]!r}: {why}"))
    if not given.cluster:
        found.append(Problem("cluster", "is empty: it names the cluster that calls go to"))
    prefix = given.path_prefix
    if prefix is not None:
        if not _PREFIX.match(prefix) or (prefix and not prefix.startswith("/")):
            found.append(Problem("path_prefix", f"{prefix[:60]!r} must begin with / and hold no blank, ? or #"))
        elif any(segment in (".", "..") for segment in prefix.split("/")):
            found.append(Problem("path_prefix", f"{prefix[:60]!r} must not hold . or .. segments"))
    return found
