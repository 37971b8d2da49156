"""Items are claimed and completed, each once; some agents hold them too long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agents import make_items
from databases import database_of, judged, nothing, opened, quantile, rows_of, say
from workers import doubles, run_workers

SHORT_LEASE = 2_000


def measure_claims(engine: str, folder: Path, items: int, processes: int, agents: int) -> bool:
    figures = {}
    for kind in ("raw", "ours"):
        with database_of(engine, folder) as (url, _), opened(url) as run:
            run(nothing)
            make_items(url, items)
            seconds, reports, _ = run_workers(url, processes, agents=agents, kind=kind)
            claims = [one for report in reports for one in report["claims"]]
            done = rows_of(url, "SELECT count(*) FROM completions")[0][0]
            figures[kind] = items / seconds, quantile(claims, 0.5), quantile(claims, 0.99), done, doubles(url)
    (speed, p50, p99, done, double), (raw_speed, _, raw_p99, *_) = figures["ours"], figures["raw"]
    limit = 8 if engine == "sqlite" else 3
    ratios = {"speed_ratio": speed / raw_speed, "p99_ratio": p99 / raw_p99}
    say(
        engine,
        "claims",
        per_s=speed,
        p50_ms=p50,
        p99_ms=p99,
        **ratios,
        **judged(ratios["speed_ratio"] >= 0.6 and ratios["p99_ratio"] <= limit),
        done=done,
        double=double,
    )
    return done == items and double == (0, 0)


def measure_stale(engine: str, folder: Path, items: int, processes: int, agents: int, share: float) -> bool:
    """Some agents stop past their leases."""
    with database_of(engine, folder) as (url, _), opened(url) as run:
        run(nothing)
        make_items(url, items)
        _, reports, _ = run_workers(url, processes, agents=agents, lease=SHORT_LEASE, pause=share)
        stale = sum((Counter(report["stale"]) for report in reports), Counter())
        done, double = rows_of(url, "SELECT count(*) FROM completions")[0][0], doubles(url)
    say(engine, "stale", refused=stale["refused"], accepted=stale["accepted"], done=done, double=double)
    return stale["accepted"] == 0 and stale["refused"] > 0 and done == items and double == (0, 0)
