"""Names that were probably meant."""

from arion_tds.admin.near import near

NAMES = ["weather.get_forecast", "weather.get_current", "orders.create", "orders.cancel", "zoo__lion"]


def test_a_slip_finds_the_name_and_the_nearest_stands_first() -> None:
    assert near("weather.get_forcast", NAMES)[0] == "weather.get_forecast"
    assert near("Orders.Create", NAMES)[0] == "orders.create"


def test_a_name_without_or_with_another_namespace_is_found_by_its_own_part() -> None:
    assert near("create", NAMES)[0] == "orders.create"
    assert near("climate.get_current", NAMES)[0] == "weather.get_current"
    assert near("zoo.lion", NAMES)[0] == "zoo__lion"


def test_nothing_is_proposed_for_what_is_like_nothing() -> None:
    assert near("xylophone", NAMES) == ()
    assert near("", []) == ()


def test_no_more_than_asked_for() -> None:
    assert len(near("ns.tool_1", [f"ns.tool_{n}" for n in range(50)], limit=3)) == 3
