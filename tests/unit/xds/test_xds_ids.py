import pytest

from arion_tds.model.delivery import ResourceId
from arion_tds.xds import ids


def test_only_the_first_two_slashes_split() -> None:
    assert ids.parse("server/config/weather.get/v2/x") == ResourceId("server/config", "weather.get/v2/x")


@pytest.mark.parametrize("name", ["", "a", "a/b", "/b/c", "a//c", "a/b/", "//", "xdstp://authority/t/a/b"])
def test_an_id_with_a_missing_or_empty_part_is_malformed(name: str) -> None:
    problem = ids.parse(name)
    assert isinstance(problem, str)
    assert "<server>/<config>/<name>" in problem


def test_a_glob_is_a_scope_a_slash_and_a_star() -> None:
    assert ids.glob("a/b") == "a/b/*"
    assert ids.scope_of_glob("a/b/*") == "a/b"


@pytest.mark.parametrize("name", ["*", "a/*", "/b/*", "a//*", "a/b/c*", "a/b/c/*", "a/b/x"])
def test_no_other_name_is_a_glob(name: str) -> None:
    assert ids.scope_of_glob(name) is None
