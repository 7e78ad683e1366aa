"""A small museum service behind the demo's OpenAPI document (catalog/tenant-a-museum.yaml); part of sample_service.

In: REST requests. Out: JSON that depends on the requests alone. What was bought is forgotten when the process ends.

    GET  /museum/hours?from=&days=          GET  /museum/exhibitions?theme=&open=     GET /museum/exhibitions/{id}
    POST /museum/tickets {kind, day, …}     GET  /museum/tickets/{id}                 DELETE /museum/tickets/{id}
"""

from __future__ import annotations

import datetime
from typing import Any, Final

from aiohttp import web

MAX_TICKETS: Final = 1_000
EXHIBITIONS: Final = (
    {"id": "tides", "title": "Tides and Tables", "theme": "science", "open": True, "room": 3},
    {"id": "glass", "title": "A History of Glass", "theme": "craft", "open": True, "room": 1},
    {"id": "night", "title": "Maps of the Night", "theme": "science", "open": False, "room": None},
)
PRICES: Final = {"adult": 14.0, "child": 6.5, "group": 90.0}
_TICKETS: Final = web.AppKey("tickets", dict[str, dict[str, Any]])


def add_routes(app: web.Application) -> None:
    """Serve the museum beside what the app serves already."""
    app[_TICKETS] = {}
    app.router.add_get("/museum/hours", _hours)
    app.router.add_get("/museum/exhibitions", _exhibitions)
    app.router.add_get("/museum/exhibitions/{id}", _exhibition)
    app.router.add_post("/museum/tickets", _buy)
    app.router.add_get("/museum/tickets/{id}", _ticket)
    app.router.add_delete("/museum/tickets/{id}", _give_back)


async def _hours(request: web.Request) -> web.Response:
    try:
        first = datetime.date.fromisoformat(request.query.get("from", "2030-01-01"))
        days = min(max(int(request.query.get("days", "7")), 1), 31)
    except ValueError:
        return web.json_response({"error": "from must be a date, days a number"}, status=400)
    shown = (first + datetime.timedelta(days=ahead) for ahead in range(days))
    hours = []
    for day in shown:
        opens, closes = (None, None) if day.weekday() == 0 else ("10:00", "18:00")
        hours.append({"date": day.isoformat(), "opens": opens, "closes": closes})
    return web.json_response({"hours": hours})


async def _exhibitions(request: web.Request) -> web.Response:
    theme, is_open = request.query.get("theme"), request.query.get("open")
    found = [
        one
        for one in EXHIBITIONS
        if theme in {None, one["theme"]} and is_open in {None, "true" if one["open"] else "false"}
    ]
    return web.json_response({"exhibitions": found})


async def _exhibition(request: web.Request) -> web.Response:
    for one in EXHIBITIONS:
        if one["id"] == request.match_info["id"]:
            return web.json_response(one)
    return _missing("exhibition")


async def _buy(request: web.Request) -> web.Response:
    tickets = request.app[_TICKETS]
    asked = await request.json()
    if not isinstance(asked, dict) or asked.get("kind") not in PRICES:
        return web.json_response({"error": f"kind must be one of {', '.join(PRICES)}"}, status=422)
    if len(tickets) >= MAX_TICKETS:
        return web.json_response({"error": "sold out"}, status=409)
    count = int(asked.get("count", 1))
    ticket = {"id": f"T{len(tickets) + 1}", "count": count, "price": PRICES[asked["kind"]] * count, **asked}
    tickets[str(ticket["id"])] = ticket
    return web.json_response(ticket, status=201)


async def _ticket(request: web.Request) -> web.Response:
    ticket = request.app[_TICKETS].get(request.match_info["id"])
    return _missing("ticket") if ticket is None else web.json_response(ticket)


async def _give_back(request: web.Request) -> web.Response:
    ticket = request.app[_TICKETS].pop(request.match_info["id"], None)
    return _missing("ticket") if ticket is None else web.Response(status=204)


def _missing(what: str) -> web.Response:
    return web.json_response({"error": f"no such {what}"}, status=404)
