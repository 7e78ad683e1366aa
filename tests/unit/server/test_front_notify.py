"""list_changed: when the list changed and only then, gathered, to everybody who was not told yet."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from front_samples import ADMINS, published, put, tool
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arion_tds.auth.access import TokenCaller
from arion_tds.auth.rbac import Token
from arion_tds.model.caller import Anonymous
from arion_tds.model.tool import Tool
from arion_tds.server.notify import AT_ONCE, ChangeNotifier, Subscriber
from arion_tds.server.sse import EventStream
from arion_tds.view import Published


class Crank:
    """A loop's timers, turned by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Crank:
        heapq.heappush(self._due, (when, next(self._count), callback))
        return self

    def call_soon(self, callback: Callable[[], None]) -> Crank:
        return self.call_at(self.now, callback)

    def cancel(self) -> None:
        self._due.clear()

    def turn(self, seconds: float = 0.0) -> None:
        """Let time pass and run what is due."""
        self.now += seconds
        while self._due and self._due[0][0] <= self.now:
            heapq.heappop(self._due)[2]()


class Heard(EventStream):
    """A stream that remembers how often it was told."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        super().__init__(1 << 16)
        self.count = 0
        self.first: Callable[[], object] = int

    def push(self, message: bytes) -> bool:
        self.count += 1
        if self.count == 1:
            self.first()
        return super().push(message)


def room(*tools: Tool, streams: int = 1, interval: float = 0.1) -> tuple[Crank, Published, ChangeNotifier, list[Heard]]:
    crank, place = Crank(), published(*tools)
    notifier = ChangeNotifier(place, interval=interval, loop=lambda: crank)
    listeners = [Heard() for _ in range(streams)]
    for one in listeners:
        notifier.add(one, b"{}", Anonymous())
    return crank, place, notifier, listeners


def test_every_stream_hears_of_a_new_tool_once() -> None:
    crank, place, _, streams = room(streams=3)
    put(place, tool("a"))
    crank.turn()
    assert [one.count for one in streams] == [1, 1, 1]
    crank.turn(10)
    assert [one.count for one in streams] == [1, 1, 1]


def test_nobody_hears_of_a_publication_that_leaves_the_list_as_it_is() -> None:
    one = tool("a")
    crank, place, _, (stream,) = room(one)
    put(place, tool("a"), gone=(one,))
    crank.turn(10)
    assert stream.count == 0


def test_a_changed_definition_is_a_change() -> None:
    one = tool("a")
    crank, place, _, (stream,) = room(one)
    put(place, tool("a", description="other"), gone=(one,))
    crank.turn()
    assert stream.count == 1


def test_changes_are_gathered_to_one_message_per_interval() -> None:
    crank, place, _, (stream,) = room()
    for number in range(50):
        put(place, tool(f"t{number}"))
        crank.turn(0.01)
    crank.turn(1)
    assert 5 <= stream.count <= 6


def test_a_change_and_its_undoing_between_two_rounds_are_told() -> None:
    one = tool("a")
    crank, place, _, (stream,) = room()
    put(place, tool("b"))
    crank.turn()
    put(place, one)
    put(place, gone=(one,))
    crank.turn(1)
    assert stream.count == 2


def test_a_stream_opened_after_the_change_is_not_told_of_it() -> None:
    crank, place, notifier, (early,) = room()
    put(place, tool("a"))
    late = Heard()
    notifier.add(late, b"{}", Anonymous())
    crank.turn(1)
    assert (early.count, late.count) == (1, 0)
    put(place, tool("b"))
    crank.turn(1)
    assert (early.count, late.count) == (2, 1)


def test_thousands_are_told_in_portions_and_changes_meanwhile_reach_everybody() -> None:
    crank, place, _, streams = room(streams=600)
    put(place, tool("a"))
    streams[300].first = lambda: put(place, tool("b"))
    crank.turn()
    crank.turn(1)
    assert {one.count for one in streams} == {2}


def test_who_left_and_a_closed_notifier_hear_nothing() -> None:
    crank, place, notifier, (stream,) = room()
    other = Heard()
    notifier.discard(notifier.add(other, b"{}", Anonymous()))
    put(place, tool("a"))
    notifier.close()
    crank.turn(1)
    put(place, tool("b"))
    crank.turn(1)
    assert (stream.count, other.count) == (0, 0)
    assert len(notifier) == 1


def test_one_stream_is_told_alone_in_the_next_round_even_while_one_runs() -> None:
    crank, place, notifier, streams = room(streams=600, interval=0.5)
    first = next(iter(notifier._subscribers))
    notifier.tell(first)
    notifier.tell(first)
    crank.turn()
    assert [one.count for one in streams[:2]] == [1, 0]
    put(place, tool("a"))
    streams[599].first = lambda: notifier.tell(first)
    crank.turn(1)
    crank.turn(1)
    assert [one.count for one in streams[:2]] == [3, 1]


def test_only_those_whose_list_changed_are_told() -> None:
    crank, place, notifier, (anybody,) = room()
    admin = Heard()
    notifier.add(admin, b"{}", TokenCaller(Token({}, {"role": "admin"}), "p:ada", None, float))
    put(place, tool("secret", rbac=ADMINS))
    crank.turn()
    assert (anybody.count, admin.count) == (0, 1)
    put(place, tool("open"))
    crank.turn(1)
    assert (anybody.count, admin.count) == (1, 2)


def test_a_tool_that_is_taken_from_a_caller_is_told_to_that_caller() -> None:
    crank, place, notifier, (anybody,) = room(tool("a"))
    admin = Heard()
    notifier.add(admin, b"{}", TokenCaller(Token({}, {"role": "admin"}), "p:ada", None, float))
    put(place, tool("a", rbac=ADMINS), gone=(tool("a"),))
    crank.turn()
    assert (anybody.count, admin.count) == (1, 0)


def test_many_changes_before_a_round_are_joined_and_nobody_misses_one() -> None:
    crank, place, notifier, (anybody,) = room()
    admin = Heard()
    notifier.add(admin, b"{}", TokenCaller(Token({}, {"role": "admin"}), "p:ada", None, float))
    for number in range(200):
        put(place, tool(f"secret{number}", rbac=ADMINS))
    crank.turn()
    assert (anybody.count, admin.count) == (0, 1)


class Slow(Heard):
    """A stream that remembers when it was told; writing to it takes a while."""

    __slots__ = ("_crank", "_takes", "opened", "times")

    def __init__(self, crank: Crank, takes: float) -> None:
        super().__init__()
        self._crank = crank
        self._takes = takes
        self.opened = crank.now
        self.times: list[float] = []

    def push(self, message: bytes) -> bool:
        self.times.append(self._crank.now)
        self._crank.now += self._takes
        return super().push(message)


_steps = st.lists(
    st.one_of(
        st.just("change"),
        st.just("open"),
        st.just("leave"),
        st.just("tell"),
        st.floats(0.0, 0.3, allow_nan=False),
    ),
    max_size=60,
)


@settings(deadline=None)
@example(["change", 0.0, "leave", "leave", "change", 0.05], 0.01, 5)
@given(_steps, st.sampled_from((0.0, 0.0001, 0.01)), st.integers(0, 3 * AT_ONCE))
def test_nobody_hears_more_often_than_the_interval_and_nobody_misses_the_last_change(
    steps: list[str | float], takes: float, streams: int
) -> None:
    crank, place, notifier, _ = room(streams=0)
    here: dict[Slow, Subscriber] = {}
    seen: list[Slow] = []
    changed = float("-inf")

    def come() -> None:
        one = Slow(crank, takes)
        seen.append(one)
        here[one] = notifier.add(one, b"{}", Anonymous())

    for _ in range(streams):
        come()
    for number, step in enumerate(steps):
        match step:
            case "change":
                put(place, tool(f"t{number}"))
                changed = crank.now
            case "open":
                come()
            case "leave" if here:
                notifier.discard(here.pop(next(iter(here))))
            case "tell" if here:
                notifier.tell(next(iter(here.values())))
            case float():
                crank.turn(step)
    for _ in range(50):
        crank.turn(1.0)
    for one in here:
        if one.opened < changed:
            assert one.times[-1:] >= [changed]
    for one in seen:
        gaps = [after - before for before, after in itertools.pairwise(one.times)]
        assert all(gap > 0.1 - 1e-9 for gap in gaps), gaps


def test_a_change_after_a_quiet_while_is_told_at_once() -> None:
    crank, place, notifier, _ = room(streams=0)
    stream = Slow(crank, 0.0)
    notifier.add(stream, b"{}", Anonymous())
    for number in range(3):
        crank.turn(0.11)
        put(place, tool(f"t{number}"))
        now = crank.now
        crank.turn()
        assert stream.times[-1] == now
