"""A store that does everything right, in SQLite, and the fixtures of its tests."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from deepwork.api import Session, StateStore
from deepwork.errors import CorruptSession, StaleSession

TABLE = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, revision INT, content TEXT, archived INT DEFAULT 0)"


class GoodStore(StateStore):
    """Does everything right; the others change one part of it."""

    breaks = None

    def __init__(self, file):
        self.file = file

    async def load(self, session_id):
        with self.connect() as database:
            row = self.read(database, session_id)
        return row and self.decode(row[1]).model_copy(update={"revision": row[0]})

    async def save(self, session, *, expected):
        with self.connect() as database:
            database.execute("BEGIN IMMEDIATE")
            self.check(database, session, expected)
            revision = self.write(database, session, expected)
            database.execute("COMMIT")
        return revision

    async def find(self, *, status=None, before=None, limit=10):
        return self.choose([session.summary() for session in self.everything()], status, before, limit)

    async def damaged(self):
        with self.connect() as database:
            rows = database.execute("SELECT id, content FROM sessions").fetchall()
        return [session_id for session_id, content in rows if not content.endswith("}")]

    async def archive(self, session_id):
        with self.connect() as database:
            database.execute("UPDATE sessions SET archived = 1 WHERE id = ?", [session_id])

    async def archived(self):
        return self.choose([session.summary() for session in self.everything("archived")], None, None, None)

    def connect(self):
        database = sqlite3.connect(self.file, isolation_level=None, timeout=10)
        database.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug in these tests
        database.execute(TABLE)
        return closing(database)

    def read(self, database, session_id):
        query = "SELECT revision, content FROM sessions WHERE id = ? AND NOT archived"
        return database.execute(query, [session_id]).fetchone()

    def check(self, database, session, expected):
        row = self.read(database, session.session_id)
        if (row[0] if row else None) != expected or self.is_archived(database, session):
            raise StaleSession("changed meanwhile")

    def is_archived(self, database, session):
        query = "SELECT 1 FROM sessions WHERE id = ? AND archived"
        return database.execute(query, [session.session_id]).fetchone()

    def write(self, database, session, expected):
        revision = (expected or 0) + 1
        row = [session.session_id, revision, self.encode(session)]
        database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, 0)", row)
        return revision

    def everything(self, condition="NOT archived"):
        with self.connect() as database:
            rows = database.execute(f"SELECT content FROM sessions WHERE {condition} ORDER BY rowid").fetchall()
        for (content,) in rows:
            try:
                yield self.decode(content)
            except CorruptSession:
                continue

    def choose(self, summaries, status, before, limit):
        fitting = [
            summary
            for summary in summaries
            if status in (None, summary.status) and (before is None or summary.updated_at < before)
        ]
        return sorted(fitting, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def encode(self, session):
        return session.model_dump_json()

    def decode(self, content):
        try:
            return Session.model_validate_json(content)
        except ValueError:
            raise CorruptSession("damaged") from None


class Fixtures:
    store_class: type[GoodStore]

    @pytest.fixture
    def reopen(self, tmp_path):
        return partial(self.store_class, tmp_path / "sessions.db")

    @pytest.fixture
    async def store(self, reopen):
        async with reopen() as store:
            yield store

    @pytest.fixture
    def read_raw(self, tmp_path):
        async def read_raw(session_id):
            with closing(sqlite3.connect(tmp_path / "sessions.db")) as database:
                query = "SELECT content FROM sessions WHERE id = ?"
                return json.loads(database.execute(query, [session_id]).fetchone()[0])

        return read_raw

    @pytest.fixture
    def spoil(self, tmp_path):
        async def spoil(session_id):
            with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as database:
                database.execute("UPDATE sessions SET content = substr(content, 1, 40) WHERE id = ?", [session_id])

        return spoil
