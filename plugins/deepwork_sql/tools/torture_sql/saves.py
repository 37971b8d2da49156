"""One session is saved again and again."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from databases import connect_raw, database_of, execute_raw, judged, opened, say

from deepwork.api import Session
from deepwork.models.history import HistoryEntry
from deepwork.testing import a_session
from deepwork.testing.samples import at
from deepwork_sql import Database
from deepwork_sql.session_rows import SessionRows

SAVES, ENTRIES = 400, 20


def a_saved_session(number: int) -> Session:
    history = [HistoryEntry(at=at(0), kind="step_begun", detail={"n": n}) for n in range(1 + number % ENTRIES)]
    return a_session("s1", history=history, goal="a goal " * 20)


async def save_ours(database: Database) -> list[float]:
    rows, revision, times = SessionRows("m", "ours"), None, []
    for number in range(SAVES):
        session = a_saved_session(number)
        begin = time.perf_counter()
        revision = await database.write(lambda tx, s=session, r=revision: rows.save(tx, s, r))
        times.append(time.perf_counter() - begin)
    return times


def save_raw(url: str) -> list[float]:
    """The statements of a save, and the same work to make what they store."""
    is_sqlite = url.startswith("sqlite")
    connection, mark = connect_raw(url), "?" if is_sqlite else "%s"
    key = "machine = 'm' AND project = 'raw' AND session_id = 's1' AND archived = " + ("0" if is_sqlite else "false")
    lock, xid = ("", "0") if is_sqlite else (" FOR UPDATE", "pg_current_xact_id()::text::bigint")
    update = (
        f"UPDATE deepwork_sessions SET revision={mark}, schema_version=1, status='active', updated_at='x', "
        f"history_length={mark}, summary={mark}, document={mark} WHERE {key} AND revision={mark}"
    )
    event = (
        "INSERT INTO deepwork_events (xid, source, event, workflow_id, at, principal, data) "
        f"VALUES ({xid}, 'core', {mark}, 's1', 1, 'local', {mark})"
    )
    flag = "0" if is_sqlite else "false"
    connection.execute(f"INSERT INTO deepwork_sessions VALUES ('m','raw','s1',1,1,'active','x',0,{flag},{flag},'','')")
    connection.commit()
    times = []
    for number in range(1, SAVES):
        session = a_saved_session(number)
        begin = time.perf_counter()
        document, summary = session.model_dump_json(), session.summary().model_dump_json()
        if is_sqlite:
            connection.execute("BEGIN IMMEDIATE")
        query = f"SELECT history_length FROM deepwork_sessions WHERE {key} AND revision = {mark}{lock}"
        length = connection.execute(query, (number,)).fetchone()[0]
        connection.execute(update, (number + 1, len(session.history), summary, document, number))
        for entry in session.history[length:]:
            connection.execute(event, (f"session:{entry.kind}", json.dumps(entry.model_dump(mode="json"))))
        connection.commit()
        times.append(time.perf_counter() - begin)
    return times


def measure_saves(engine: str, folder: Path) -> bool:
    """Save by turns, so that both meet the same machine."""
    with database_of(engine, folder) as (url, _), opened(url) as run:
        ours, raw = [], []
        for _ in range(3):
            ours += run(save_ours)
            raw += save_raw(url)
            execute_raw(url, "DELETE FROM deepwork_sessions")
    ratio = statistics.median(ours) / statistics.median(raw)
    p50 = statistics.median(ours) * 1000
    say(engine, "save", p50_ms=p50, raw_p50_ms=statistics.median(raw) * 1000, ratio=ratio, **judged(ratio <= 1.6))
    return True
