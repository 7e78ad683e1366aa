"""A small weather service for the demo catalog: `python -m control_plane_example.sample_service --address HOST:PORT`.

In: REST requests. Out: JSON that depends on the request alone (no clock, no network, no dice). Called by demos, tests.

    GET  /v1/forecast/{city}?days=3&units=metric      GET  /v1/alerts?region=&severity=
    GET  /v1/current/{city}?units=metric              POST /v1/observations {city, temperature, note?}
    GET  /v1/climate/{city}/{month}                   …   /museum: see sample_museum
"""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from typing import Any, Final

from aiohttp import web

from control_plane_example import sample_museum

CITIES: Final = {
    "amsterdam": ("Amsterdam", "NL", 10.2),
    "bergen": ("Bergen", "NO", 7.6),
    "cairo": ("Cairo", "EG", 22.1),
    "lima": ("Lima", "PE", 19.2),
    "nairobi": ("Nairobi", "KE", 17.8),
    "osaka": ("Osaka", "JP", 16.9),
    "paris": ("Paris", "FR", 12.4),
    "são paulo": ("São Paulo", "BR", 19.5),
    "zürich": ("Zürich", "CH", 9.9),
}
SKIES: Final = ("clear", "partly cloudy", "cloudy", "light rain", "rain", "thunderstorm", "fog")
ALERTS: Final = (
    {"id": "NO-17", "region": "NO", "severity": "severe", "text": "Storm surge along the west coast"},
    {"id": "NL-04", "region": "NL", "severity": "minor", "text": "Dense fog in the morning"},
    {"id": "EG-02", "region": "EG", "severity": "moderate", "text": "Heat wave, up to 44 degrees"},
)


def app() -> web.Application:
    """The service as an aiohttp application."""
    made = web.Application()
    made.router.add_get("/v1/forecast/{city}", _forecast)
    made.router.add_get("/v1/current/{city}", _current)
    made.router.add_get("/v1/climate/{city}/{month}", _climate)
    made.router.add_get("/v1/alerts", _alerts)
    made.router.add_post("/v1/observations", _observe)
    sample_museum.add_routes(made)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted. Returns the exit code: 0, or 2 when the address cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m control_plane_example.sample_service")
    parser.add_argument("--address", default="127.0.0.1:4001", help="where to listen (default %(default)s)")
    address = parser.parse_args(arguments).address
    host, _, port = address.rpartition(":")
    try:
        web.run_app(app(), host=host.strip("[]"), port=int(port), handle_signals=True)
    except OSError as error:
        print(f"cannot listen on {address}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return 2
    return 0


async def _forecast(request: web.Request) -> web.Response:
    city = _city(request)
    days = _number(request.query.get("days", "3"), "days", 1, 14)
    units = _units(request)
    return web.json_response(
        {
            "city": city[0],
            "country": city[1],
            "units": units,
            "days": [{"day": day, **_weather(city, day, units)} for day in range(1, days + 1)],
        }
    )


async def _current(request: web.Request) -> web.Response:
    city, units = _city(request), _units(request)
    return web.json_response({"city": city[0], "country": city[1], "units": units, **_weather(city, 0, units)})


async def _climate(request: web.Request) -> web.Response:
    city = _city(request)
    month = _number(request.match_info["month"], "month", 1, 12)
    swing = abs(7 - month) * 1.5
    return web.json_response(
        {
            "city": city[0],
            "month": month,
            "mean_temperature": round(city[2] + 4.5 - swing, 1),
            "rain_days": 3 + _dice(city[0], month) % 15,
        }
    )


async def _alerts(request: web.Request) -> web.Response:
    region, severity = request.query.get("region"), request.query.get("severity")
    found = [alert for alert in ALERTS if region in {None, alert["region"]} and severity in {None, alert["severity"]}]
    return web.json_response({"alerts": found, "total": len(found)})


async def _observe(request: web.Request) -> web.Response:
    try:
        body = await request.json()
    except ValueError:
        raise _refusal(400, "the body is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("temperature"), int | float):
        raise _refusal(422, "an observation needs a city and a temperature in degrees Celsius")
    name = str(body.get("city", ""))
    if name.casefold() not in CITIES:
        raise _refusal(422, f"unknown city {name!r}: known are {', '.join(sorted(CITIES))}")
    number = zlib.crc32(repr(sorted(body.items())).encode()) % 100_000
    return web.json_response({"id": f"obs-{number:05}", "accepted": True}, status=201)


def _city(request: web.Request) -> tuple[str, str, float]:
    name = request.match_info["city"]
    city = CITIES.get(name.casefold())
    if city is None:
        raise _refusal(404, f"unknown city {name!r}: known are {', '.join(sorted(CITIES))}")
    return city


def _units(request: web.Request) -> str:
    units = request.query.get("units", "metric")
    if units not in {"metric", "imperial"}:
        raise _refusal(400, f"units must be metric or imperial, not {units!r}")
    return units


def _number(text: str, name: str, low: int, high: int) -> int:
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise _refusal(400, f"{name} must be a whole number from {low} to {high}, not {text!r}")
    return int(text)


def _weather(city: tuple[str, str, float], day: int, units: str) -> dict[str, Any]:
    dice = _dice(city[0], day)
    celsius = round(city[2] + dice % 90 / 10 - 4.5, 1)
    return {
        "temperature": celsius if units == "metric" else round(celsius * 9 / 5 + 32, 1),
        "wind": dice // 90 % 60,
        "sky": SKIES[dice // 5400 % len(SKIES)],
    }


def _dice(name: str, number: int) -> int:
    return zlib.crc32(f"{name}/{number}".encode())


def _refusal(code: int, text: str) -> web.HTTPException:
    classes = {400: web.HTTPBadRequest, 404: web.HTTPNotFound, 422: web.HTTPUnprocessableEntity}
    body = f'{{"error": {web.json_response(text).text}}}'
    return classes[code](text=body, content_type="application/json")


if __name__ == "__main__":
    sys.exit(main())
