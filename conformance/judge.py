"""What a run of the conformance suite means: results against the failures that are expected. Pure.

In: the suite's check results, and the expectations of expected-failures-*.yml. Out: faults as sentences, and a table.
Called by run and upstream.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

BEGIN = "<!-- table: written by the run -->"
END = "<!-- end of table -->"


@dataclasses.dataclass(frozen=True)
class Expected:
    """Checks of one scenario that fail, and why that is right."""

    fails: frozenset[str]
    why: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The results of one scenario. `failed`: the ids of checks with a failure; a check may report several results."""

    passed: int
    failures: int
    warnings: int
    failed: frozenset[str]


def outcome(checks: Iterable[Mapping[str, Any]]) -> Outcome:
    """Read a checks.json of the suite."""
    results = [(check["id"], check["status"]) for check in checks]
    counts = collections.Counter(status for _, status in results)
    failed = frozenset(name for name, status in results if status == "FAILURE")
    return Outcome(counts["SUCCESS"], counts["FAILURE"], counts["WARNING"], failed)


def expectations(document: Mapping[str, Any]) -> dict[str, Expected]:
    """Read an expectations file: `scenario: {fails: [check, …], why: sentence}`. ValueError says what is wrong."""
    found = {}
    for scenario, entry in document.items():
        if set(entry) != {"fails", "why"} or not entry["fails"] or not str(entry["why"]).strip():
            raise ValueError(f"{scenario}: wants a list `fails` with at least one check, and a sentence `why`")
        found[scenario] = Expected(frozenset(entry["fails"]), " ".join(str(entry["why"]).split()))
    return found


def faults(results: Mapping[str, Outcome], expected: Mapping[str, Expected], scenarios: Iterable[str]) -> list[str]:
    """What is not as expected. `scenarios`: all that the suite was to run."""
    said = [f"{scenario}: the suite gave no result" for scenario in scenarios if scenario not in results]
    for scenario, result in sorted(results.items()):
        accepted = expected[scenario].fails if scenario in expected else frozenset[str]()
        said += [f"{scenario}: {check} fails" for check in sorted(result.failed - accepted)]
        said += [
            f"{scenario}: {check} is expected to fail and does not: remove it from the expected failures"
            for check in sorted(accepted - result.failed)
        ]
    said += [
        f"{scenario}: is expected to fail, but no such scenario ran" for scenario in expected.keys() - results.keys()
    ]
    return said


def totals(results: Mapping[str, Outcome]) -> str:
    """One line of figures."""
    whole = sum(not result.failed for result in results.values())
    passed = sum(result.passed for result in results.values())
    failed = sum(result.failures for result in results.values())
    return f"{whole} of {len(results)} scenarios without a failure; {passed} checks pass, {failed} fail"


def table(runs: Mapping[str, tuple[Mapping[str, Outcome], Mapping[str, Expected]]]) -> str:
    """A Markdown table: one row per scenario, one column per revision, the reason of what fails."""
    rows = [
        f"| scenario | {' | '.join(runs)} | why not |",
        f"|---|{'---|' * len(runs)}---|",
    ]
    names = dict.fromkeys(name for results, _ in runs.values() for name in results)
    for name in names:
        cells = []
        reasons: dict[str, None] = {}
        for results, expected in runs.values():
            cells.append(_cell(results.get(name)))
            if name in expected:
                reasons[expected[name].why] = None
        rows.append(f"| {name} | {' | '.join(cells)} | {' '.join(reasons)} |")
    return "\n".join(rows)


def _cell(result: Outcome | None) -> str:
    if result is None:
        return ""
    count = result.passed + result.failures
    warned = f", {result.warnings} SHOULD not met" if result.warnings else ""
    if result.failures:
        return f"fails {result.failures} of {count}{warned}"
    return f"pass {count}{warned}" if count else "nothing tested"


def with_table(page: str, made: str) -> str:
    """The page with the table between its two marks replaced. ValueError when it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"
