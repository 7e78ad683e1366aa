"""Metrics of several processes as those of one: values in, values out. Called by siblings.

Counters and histograms are added up by name and labels. A gauge says for itself, where it is declared, what several
values of it come to (`multiprocess_mode` of the Prometheus client: sum, max or min).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

_PROCESS: Final = {"process_start_time_seconds": "min", "process_max_fds": "max"}
"""Gauges of the client itself that are not added up."""

_MODES: Final[Mapping[str, Callable[[float, float], float]]] = {
    "sum": lambda one, other: one + other,
    "max": max,
    "min": min,
}


class Family(msgspec.Struct, array_like=True, frozen=True):
    """One metric: its name, its type, what it means, and its samples: (name, labels, value)."""

    name: str
    kind: str
    text: str
    samples: tuple[tuple[str, tuple[tuple[str, str], ...], float], ...]


encode: Final = msgspec.json.Encoder().encode
"""Families as bytes."""

_decoder = msgspec.json.Decoder(tuple[Family, ...])


def modes(gauges: Iterable[object]) -> dict[str, str]:
    """What several values of each gauge come to, by name."""
    found = {one._name: one._multiprocess_mode for one in gauges if isinstance(one, Gauge)}  # noqa: SLF001 - see gen_docs
    return {**_PROCESS, **found}


def collect(registry: CollectorRegistry) -> tuple[Family, ...]:
    """All that the process counts."""
    return tuple(
        Family(
            one.name,
            one.type,
            one.documentation,
            tuple((sample.name, tuple(sample.labels.items()), sample.value) for sample in one.samples),
        )
        for one in registry.collect()
    )


def decode(raw: bytes) -> tuple[Family, ...]:
    """What `encode` gave. MsgspecError when it is not that."""
    return _decoder.decode(raw)


class Summed:
    """As much of a registry as the page is made from."""

    def __init__(self, parts: Iterable[Iterable[Family]], mode: Mapping[str, str]) -> None:
        """`parts`: what each process has collected. `mode`: see `modes`; a gauge that is not there is added up."""
        families: dict[str, Family] = {}
        values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for part in parts:
            for family in part:
                known = values.setdefault(families.setdefault(family.name, family).name, {})
                join = _MODES[mode.get(family.name, "sum") if family.kind == "gauge" else "sum"]
                for name, labels, value in family.samples:
                    key = name, labels
                    if name.endswith("_created"):
                        known[key] = min(known.get(key, value), value)
                    else:
                        known[key] = value if key not in known else join(known[key], value)
        self._families = families
        self._values = values

    def families(self) -> tuple[Family, ...]:
        """To be added up with more."""
        return tuple(
            Family(
                name, one.kind, one.text, tuple((line, of, value) for (line, of), value in self._values[name].items())
            )
            for name, one in self._families.items()
        )

    def collect(self) -> Iterable[Metric]:
        """As the Prometheus client's writer wants it."""
        for name, family in self._families.items():
            made = Metric(name, family.text, family.kind)
            made.samples = [Sample(one, dict(labels), value) for (one, labels), value in self._values[name].items()]
            yield made
