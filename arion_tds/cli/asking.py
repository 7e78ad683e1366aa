"""Questions to a running gateway, over HTTP: its admin listener, and the MCP listeners that this one knows of.

In: an address and a question. Out: decoded JSON, or AskError with a sentence that says what to do next. Used by the
commands that look at a gateway. The standard library's client: it loads in a few milliseconds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import arion_tds
from arion_tds.cli import trusting
from arion_tds.errors import AskError

DEFAULT: Final = "http://127.0.0.1:9901"
VARIABLE: Final = "ARION_TDS_ADMIN"
TOKEN_VARIABLE: Final = "ARION_TDS_ADMIN_TOKEN"  # noqa: S105 - where it is, not what it is
MAX_ANSWER: Final = 256 << 20
"""Bytes of an answer that are read."""

_PATIENCE: Final = 10.0
_SILENCE: Final = 40.0
"""Seconds without a byte after which an event stream is lost; it carries a comment every 15."""

_Json = dict[str, Any]


class Answer(dict[str, Any]):
    """An object that a gateway answered with. What is asked of it and is not there is an AskError, not a KeyError."""

    def __missing__(self, key: str) -> NoReturn:
        """A gateway of another version says less."""
        raise AskError(
            f"the gateway does not say {key!r}: is it older than this arion-tds ({arion_tds.__version__})? "
            "Use the one that came with it"
        )


class _Stay(urllib.request.HTTPRedirectHandler):
    """A gateway sends nobody elsewhere, and a token must not follow who does."""

    def redirect_request(self, *_: object) -> None:
        return


def options(parser: argparse.ArgumentParser) -> None:
    """Where the gateway is, and how to answer."""
    parser.add_argument(
        "--admin",
        metavar="URL",
        default=os.environ.get(VARIABLE) or DEFAULT,
        help=f"the gateway's admin listener (default: ${VARIABLE}, or {DEFAULT}; its token: ${TOKEN_VARIABLE})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def get(chosen: argparse.Namespace, path: str, params: Mapping[str, Any] | None = None) -> _Json:
    """A page of the admin listener. `params` may hold lists; None leaves one out."""
    address = _origin(chosen.admin)
    given = {name: value for name, value in (params or {}).items() if value is not None}
    query = urllib.parse.urlencode(given, doseq=True)
    return _answer(_request(f"{address}{path}" + (f"?{query}" if query else ""), _operator()), _PATIENCE)


def _operator() -> dict[str, str]:
    """What shows the admin listener that we may ask, where it wants to be shown (`admin.token`)."""
    token = os.environ.get(TOKEN_VARIABLE)
    return {"authorization": f"Bearer {token}"} if token else {}


def post(chosen: argparse.Namespace, url: str, body: Mapping[str, Any], timeout: float = _PATIENCE) -> _Json:
    """POST JSON to an MCP listener, with the caller's token if `chosen` names one."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    token = _token(chosen)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return _answer(_request(url, headers, json.dumps(body).encode()), timeout, trusting.context(chosen))


def token_option(parser: argparse.ArgumentParser) -> None:
    """How a caller's token comes in: never as an argument, which other users of the machine could read."""
    parser.add_argument(
        "--token-file", metavar="FILE", help="the JWT to send, for listeners that ask for one (or $ARION_TDS_TOKEN)"
    )


def _token(chosen: argparse.Namespace) -> str | None:
    path = getattr(chosen, "token_file", None)
    if path is None:
        return os.environ.get("ARION_TDS_TOKEN") or None
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AskError(f"--token-file {path}: {error}") from error


def listener(chosen: argparse.Namespace) -> tuple[str, str]:
    """The endpoint and scope of the MCP listener that is meant: `--listener`, `--scope`, or the only one there is."""
    found: dict[str, _Json] = get(chosen, "/status")["listeners"]
    wanted = {
        name: one
        for name, one in found.items()
        if chosen.listener in {None, name} and chosen.scope in {None, one["scope"]}
    }
    if len(wanted) == 1:
        ((_, one),) = wanted.items()
        return _reachable(chosen, one["endpoint"]), one["scope"]
    there = ", ".join(f"{name} ({one['scope']})" for name, one in list(found.items())[:20])
    if not wanted:
        raise AskError(f"no such listener: there are {there}; choose with --listener NAME or --scope SCOPE")
    raise AskError(f"there are several listeners: choose with --listener NAME or --scope SCOPE: {there}")


def listener_options(parser: argparse.ArgumentParser) -> None:
    """Which MCP listener is meant."""
    parser.add_argument("--scope", help="the listener of this scope")
    parser.add_argument("--listener", metavar="NAME", help="the listener of this name")
    parser.add_argument("--url", help="where its clients find it, if that is elsewhere (default: its own address)")
    trusting.options(parser)


def events(chosen: argparse.Namespace, last: str = "") -> Iterator[tuple[str, str, _Json]]:
    """Number, name and data of every event until the stream ends. `last`: the number to go on after."""
    request = _request(f"{_origin(chosen.admin)}/events", _operator() | ({"last-event-id": last} if last else {}))
    with _open(request, _SILENCE) as response:
        number, name = last, ""
        while True:
            try:
                line = response.readline(1 << 20)
            except (OSError, http.client.HTTPException):
                return
            if not line:
                return
            field, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(": ")
            if field == "id":
                number = value
            elif field == "event":
                name = value
            elif field == "data":
                yield number, name, json.loads(value)


def _reachable(chosen: argparse.Namespace, endpoint: str) -> str:
    """`--url`; else a listener on all addresses is asked at the host where its admin listener was found."""
    if chosen.url is not None:
        parts = _split(chosen.url, "--url")
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/mcp'}"
    parts = urllib.parse.urlsplit(endpoint)
    if parts.hostname not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return endpoint
    host = urllib.parse.urlsplit(_origin(chosen.admin)).hostname or "127.0.0.1"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}{parts.path}"


def _origin(address: str) -> str:
    parts = _split(address, "--admin")
    return f"{parts.scheme}://{parts.netloc}"


def _split(address: str, option: str) -> urllib.parse.SplitResult:
    parts = urllib.parse.urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise AskError(f"{option} {address!r} is no address: write http://HOST:PORT")
    return parts


def _request(url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> urllib.request.Request:
    """A GET, or with a body a POST; `_origin` has seen to it that the URL is http or https."""
    return urllib.request.Request(url, body, dict(headers or {}))  # noqa: S310


def _open(
    request: urllib.request.Request, timeout: float, tls: ssl.SSLContext | None = None
) -> http.client.HTTPResponse:
    origin = _origin(request.full_url)
    # A proxy of the environment is for the world outside, not for the gateway next door.
    handlers = (urllib.request.ProxyHandler({}), _Stay(), urllib.request.HTTPSHandler(context=tls))
    opener = urllib.request.build_opener(*handlers)
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        raise AskError(_refused(origin, error)) from error
    except TimeoutError as error:
        raise AskError(f"{origin} did not answer within {timeout:g} s: is it the right address?") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise AskError(f"{origin} did not answer within {timeout:g} s: is it the right address?") from error
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise AskError(
                f"the certificate of {origin} is not trusted: {error.reason.verify_message}. Say with --ca FILE or "
                "$SSL_CERT_FILE whom to trust, and with --url URL the address that the certificate is for"
            ) from error
        if isinstance(error.reason, ssl.SSLError):
            raise AskError(_turned_down(origin, error.reason)) from error
        why = getattr(error.reason, "strerror", None) or error.reason
        raise AskError(
            f"no gateway answers at {origin}: {why}. Start one with: arion-tds serve -c gateway.yaml, "
            f"or say where its admin listener is with --admin URL or ${VARIABLE}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        if origin.startswith("https:"):
            raise AskError(_turned_down(origin, error)) from error
        raise AskError(f"{origin} does not speak HTTP: is it the admin listener's address? ({error!r})") from error
    return response


def _turned_down(origin: str, error: Exception) -> str:
    """Whoever shows no certificate where one is asked for hears of it as of any broken connection."""
    return (
        f"{origin} broke off the connection: does it ask for a client certificate? "
        f"Give one with --cert FILE and --key FILE ({error!r})"
    )


def _refused(origin: str, error: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(error.read(1 << 16))["error"]
    except (ValueError, KeyError, TypeError, OSError):
        return f"{origin} answered {error.code}: is it a gateway's listener, and of this version?"
    why = said
    if isinstance(said, dict):
        why = f"{said['field']} {said.get('message')}" if said.get("field") else said.get("message", said)
    if error.code in {401, 403}:
        return f"{origin} refused the caller: {why}; give a token with --token-file FILE or $ARION_TDS_TOKEN"
    return f"{origin}: {why}"


def _answer(request: urllib.request.Request, timeout: float, tls: ssl.SSLContext | None = None) -> _Json:
    origin = _origin(request.full_url)
    try:
        with _open(request, timeout, tls) as response:
            body = response.read(MAX_ANSWER + 1)
    except (OSError, http.client.HTTPException) as error:
        raise AskError(f"{origin} broke off its answer: {error!r}; try again") from error
    if len(body) > MAX_ANSWER:
        raise AskError(f"{origin} answers with more than {MAX_ANSWER} bytes: ask for less")
    try:
        found = json.loads(body, object_hook=Answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AskError(f"{origin} does not answer as a gateway does: is it the admin listener's address?")
    return found
