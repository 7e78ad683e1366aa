"""The judge of conformance runs passes nothing that is not written down, and nothing written down that passes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import conformance
from conformance import judge
from conformance.judge import Expected

HOME = Path(conformance.__file__).parent


def results(**checks: str) -> judge.Outcome:
    """`wire=SUCCESS` and so on."""
    return judge.outcome([{"id": name, "status": status} for name, status in checks.items()])


LIST = {"prompts-list": Expected(frozenset({"prompts_list"}), "No prompts.")}


def test_only_the_expected_checks_fail() -> None:
    found = {"prompts-list": results(wire="SUCCESS", prompts_list="FAILURE"), "ping": results(ping="SUCCESS")}
    assert judge.faults(found, LIST, ["ping", "prompts-list"]) == []
    assert judge.totals(found) == "1 of 2 scenarios without a failure; 2 checks pass, 1 fail"


def test_another_failure_is_a_fault_also_in_a_scenario_that_may_fail() -> None:
    found = {"prompts-list": results(wire="FAILURE", prompts_list="FAILURE"), "ping": results(ping="FAILURE")}
    assert judge.faults(found, LIST, []) == ["ping: ping fails", "prompts-list: wire fails"]


def test_an_entry_that_no_longer_fails_is_a_fault() -> None:
    found = {"prompts-list": results(prompts_list="SUCCESS")}
    (fault,) = judge.faults(found, LIST, [])
    assert fault == "prompts-list: prompts_list is expected to fail and does not: remove it from the expected failures"
    (fault,) = judge.faults({}, LIST, [])
    assert fault == "prompts-list: is expected to fail, but no such scenario ran"


def test_a_scenario_without_a_result_is_a_fault() -> None:
    assert judge.faults({}, {}, ["ping"]) == ["ping: the suite gave no result"]


def test_a_check_that_reports_twice_failed_if_it_failed_once() -> None:
    twice = judge.outcome([{"id": "a", "status": "FAILURE"}, {"id": "a", "status": "SUCCESS"}])
    assert twice == judge.Outcome(passed=1, failures=1, warnings=0, failed=frozenset({"a"}))


def test_an_expectation_without_a_reason_is_none() -> None:
    for entry in ({"fails": ["a"]}, {"fails": [], "why": "b"}, {"fails": ["a"], "why": " "}):
        with pytest.raises(ValueError, match="ping: wants a list `fails`"):
            judge.expectations({"ping": entry})


@pytest.mark.parametrize("path", sorted(HOME.glob("expected-failures-*.yml")), ids=lambda path: path.stem)
def test_the_committed_expectations_can_be_read(path: Path) -> None:
    assert judge.expectations(yaml.safe_load(path.read_text("utf-8")))


def test_the_table_has_a_row_for_each_scenario_and_a_column_for_each_revision() -> None:
    old = {"prompts-list": results(wire="SUCCESS", prompts_list="FAILURE"), "ping": results(ping="SUCCESS")}
    new = {"prompts-list": results(prompts_list="SUCCESS", uri="WARNING"), "polling": results(seen="INFO")}
    made = judge.table({"1": (old, LIST), "2": (new, {})})
    assert made.splitlines() == [
        "| scenario | 1 | 2 | why not |",
        "|---|---|---|---|",
        "| prompts-list | fails 1 of 2 | pass 1, 1 SHOULD not met | No prompts. |",
        "| ping | pass 1 |  |  |",
        "| polling |  | nothing tested |  |",
    ]
    page = judge.with_table(f"before {judge.BEGIN} old {judge.END} after", "TABLE")
    assert page == f"before {judge.BEGIN}\nTABLE\n{judge.END} after"
    with pytest.raises(ValueError, match="has no"):
        judge.with_table("no marks", "TABLE")
