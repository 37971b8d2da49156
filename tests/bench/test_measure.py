"""The arithmetic of the figures, and the clocks behind them."""

from __future__ import annotations

import os

import pytest


def row(pairs, *, goal=None, relation="ratio"):
    from bench.goals import Figure
    from bench.measure import compare

    return compare(Figure("key", "title", "ms", "FLOOR", goal, relation), "one", pairs)


def test_a_ratio_is_taken_in_each_round_by_itself():
    """A machine that is slow for a while slows both, so the ratio of the medians would lie."""
    compared = row([(2, 1), (30, 10), (400, 100)]).compared
    assert (compared.low, compared.median, compared.high) == (2.5, 3, 3.5)


def test_a_difference_is_taken_in_each_round_by_itself():
    compared = row([(5, 1), (7, 2), (9, 3)], relation="difference").compared
    assert (compared.low, compared.median, compared.high) == (4.5, 5, 5.5)


def test_the_best_rounds_are_the_fastest():
    from bench.goals import at_least, at_most

    pairs = [(20, 10), (30, 5), (25, 8)]
    assert row(pairs, goal=at_most(1)).best == 20 / 5
    assert row(pairs, goal=at_least(1)).best == 30 / 10


@pytest.mark.parametrize(("measured", "reached"), [(1.0, True), (1.2, False)])
def test_a_goal_from_above_is_reached_up_to_its_limit(measured, reached):
    from bench.goals import at_most

    assert row([(measured, 1)], goal=at_most(1)).reached is reached


@pytest.mark.parametrize(("measured", "reached"), [(0.5, True), (0.4, False)])
def test_a_goal_from_below_is_reached_from_its_limit_on(measured, reached):
    from bench.goals import at_least

    assert row([(measured, 1)], goal=at_least(0.5)).reached is reached


def test_the_first_round_is_dropped(tmp_path):
    from bench.client import Era
    from bench.contestants import FLOOR, Launcher
    from bench.measure import Run, Sizes

    run = Run(tmp_path, [FLOOR], Launcher(tmp_path, Era.STATELESS), Sizes(), 3)
    for number in run.rounds("anything"):
        run.add("start", FLOOR, 100.0 if number == 0 else number, 1)
    assert [pair[0] for pair in run.pairs["start", "FLOOR"]] == [1, 2, 3]


def test_every_figure_has_a_key_of_its_own():
    from bench.goals import BY_KEY, FIGURES

    assert len(BY_KEY) == len(FIGURES)


def test_the_start_lasts_until_the_tools_are_listed(a_server, launcher):
    slow = """
old = answer
def answer(request):
    time.sleep(0.2 if request["method"] == "tools/list" else 0)
    old(request)
"""
    with launcher(a_server(slow)) as server:
        assert server.ready_wall >= 0.2
        assert server.ready_cpu < server.ready_wall


def test_work_is_seen_in_the_processor_time_of_the_server(a_server, launcher):
    busy = "def at_end():\n    end = time.process_time() + 0.4\n    while time.process_time() < end: pass"
    with launcher(a_server(busy)) as server:
        ended = server.process.end()
    assert ended.cpu >= 0.35
    assert ended.wall >= 0.35


def test_memory_that_a_server_takes_is_seen(a_server, launcher):
    with launcher(a_server()) as server:
        small = server.ready_mib
    with launcher(a_server("kept = b'x' * 64 * 1024 * 1024")) as server:
        assert server.ready_mib - small == pytest.approx(64, abs=8)


def test_as_many_calls_are_in_flight_as_there_are_lanes(a_server, launcher):
    """The server answers only when it has eight calls to answer."""
    from bench.client import drive

    stubborn = """
waiting, old = [], answer
def answer(request):
    if request["method"] != "tools/call":
        return old(request)
    waiting.append(request)
    if len(waiting) == 8:
        while waiting:
            old(waiting.pop())
"""
    with launcher(a_server(stubborn)) as server:
        lanes = [iter([("echo", {"text": "x"})] * 5) for _ in range(8)]
        _, answers = drive(server.connections(8), lanes)
    assert len(answers) == 40


def test_an_error_among_calls_in_flight_ends_the_measurement(a_server, launcher):
    from bench.client import ContestantError, drive

    failing = """
old, count = answer, 0
def answer(request):
    global count
    count += request["method"] == "tools/call"
    old(request) if count < 7 else send(request, {"isError": True, "content": "no more"})
"""
    with launcher(a_server(failing)) as server:
        lanes = [iter([("echo", {"text": "x"})] * 5) for _ in range(4)]
        with pytest.raises(ContestantError, match='answered with an error: "no more"'):
            drive(server.connections(4), lanes)


def test_a_refused_step_is_no_finished_step(a_server, launcher):
    from bench.client import ContestantError

    refusing = """
def answer(request):
    tools = [{"name": "finished_step", "inputSchema": {"type": "object", "properties": {"session_id": {}}}}]
    send(request, {"tools": tools, "structuredContent": {"status": "needs_work"}})
"""
    refused = pytest.raises(ContestantError, match="answered 'needs_work' to finished_step")
    with launcher(a_server(refusing)) as server, refused:
        server.finish("id", "s001")


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_each_era_begins_as_agents_begin(era, a_server, launcher, tmp_path):
    from bench.client import Era

    log = tmp_path / "seen"
    program = f"""
old = answer
def answer(request):
    with open({str(log)!r}, "a") as file:
        print(request["method"], "_meta" in request["params"], file=file)
    old(request)
"""
    with launcher(a_server(program), Era(era)) as server:
        server.call("echo", text="x")
    first, enveloped = ("server/discover", True) if era == "2026-07-28" else ("initialize", False)
    assert log.read_text().splitlines() == [f"{name} {enveloped}" for name in (first, "tools/list", "tools/call")]


def test_a_long_answer_arrives_whole(a_server, launcher):
    long = "old = answer\ndef answer(request):\n    request['params']['long'] = 'x' * 3_000_000\n    old(request)"
    with launcher(a_server(long)) as server:
        answer = server.call("echo", text="x")
        assert len(server.connection.result(answer)["structuredContent"]["long"]) == 3_000_000
        assert answer.size > 3_000_000


def test_a_durable_replace_syncs_the_file_and_its_folder(tmp_path, monkeypatch):
    from bench.projects import durable_replace

    kinds, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda number: (kinds.append(os.path.isdir(f"/proc/self/fd/{number}")), real(number))
    )
    durable_replace(tmp_path, b"content")
    assert kinds == [False, True]
    assert (tmp_path / "replaced").read_bytes() == b"content"


@pytest.mark.slow
def test_floor_over_http_is_driven_on_many_connections(launcher):
    from bench.client import drive
    from bench.contestants import HTTP_FLOOR

    with launcher(HTTP_FLOOR.command) as server:
        connections = server.connections(4)
        assert len({*connections}) == 4
        _, answers = drive(connections, [iter([("echo", {"text": "x"})] * 5) for _ in connections])
        assert [answer["structuredContent"] for answer in answers] == [{"result": "x"}] * 20
        assert server.call("echo", text="hi").message["result"]["structuredContent"] == {"result": "hi"}
