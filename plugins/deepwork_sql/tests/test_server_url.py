"""A password of a database in any spelling is shown nowhere: not in a terminal, a reply, a log or a report."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

import pytest
from psycopg import OperationalError
from sqlalchemy import URL, create_engine

from deepwork.api import open_context
from deepwork.errors import DeepWorkError
from deepwork_sql import execution, opening, retry
from deepwork_sql.address import choose_address
from deepwork_sql.checks import check
from deepwork_sql.engines import cleaned, make_engine
from deepwork_sql.retry import Retry

pytestmark = pytest.mark.anyio

SECRET = "hunter2"
START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
HOST = "127.0.0.1:1"
SPELLINGS = [
    # of a URL, as it should be
    f"postgresql://u:{SECRET}@{HOST}/d",
    f"postgres://u:{SECRET}@{HOST}/d",
    f"postgresql://:{SECRET}@{HOST}/d",
    f"postgresql://u:%40{SECRET}%2F@{HOST}/d",
    f"postgresql://u:a:{SECRET}@{HOST}/d",
    f"postgresql://u:[{SECRET}@{HOST}/d",
    f"postgresql://u:{quote(SECRET[0])}%68unter2{SECRET}@{HOST}/d",
    f"postgresql://u@{HOST}/d?password={SECRET}",
    f"postgresql://u@{HOST}/d?p%61ssword={SECRET}",
    f"postgresql://u@{HOST}/d?sslmode=disable&sslpassword={SECRET}",
    f"postgresql://u@{HOST}/d?user=u&password=a+{SECRET}",
    f"postgresql://u:x@{HOST}/d?password=a%20{SECRET}",
    # characters that are not escaped
    f"postgresql://u:x@{SECRET}@{HOST}/d",
    f"postgresql://u:{SECRET}@x@{HOST}/d",
    f"postgresql://u:12/{SECRET}@{HOST}/d",
    f"postgresql://u:12#{SECRET}@{HOST}/d",
    f"postgresql://u:12?{SECRET}@{HOST}/d",
    f"postgresql://u:12?{SECRET}=x@{HOST}/d",
    f"postgresql://u:12?a={SECRET}@{HOST}/d",
    f"postgresql://u:{SECRET}/x@{HOST}/d",
    f"postgresql://u:{SECRET}#x@{HOST}/d",
    f"postgresql://u:{SECRET}?x@{HOST}/d",
    f"postgresql://u:x {SECRET}@{HOST}/d",
    f"postgresql://u:x\n{SECRET}@{HOST}/d",
    f"postgresql://u:{SECRET}[x]@{HOST}/d",
    f"postgresql://[{SECRET}",
    f"postgresql://u:[{SECRET}",
    f"postgresql://u:{SECRET}",
    f"postgresql://u:{SECRET}@",
    f"postgresql://u%3A{SECRET}@{HOST}/d",
    f"postgresql://u%3A{SECRET}%40{HOST}/d",
    f"postgresql://u%253A{SECRET}@{HOST}/d",
    f"postgresql://{HOST}/d;password={SECRET}",
    f"postgresql://{HOST}/d%3Bpassword={SECRET}",
    f"postgresql://{HOST}/d%3Fpassword%3D{SECRET}",
    f"postgresql://{HOST}/d&password={SECRET}",
    f"postgresql://u@{HOST}/d?sslmode=require;password={SECRET}",
    f"postgresql://u@{HOST}/d?sslmode=requirepassword={SECRET}",
    # names that are not parameters
    f"postgresql://u@{HOST}/d?Password={SECRET}",
    f"postgresql://u@{HOST}/d?pass={SECRET}",
    f"postgresql://u@{HOST}/d?{SECRET}",
    f"postgresql://u@{HOST}/d?connect_timeout={SECRET}",
    f"postgresql://u@{HOST}/d#password={SECRET}",
    # no URL of a database
    f"host=127.0.0.1 port=1 user=u password={SECRET}",
    f"u:{SECRET}@{HOST}/d",
    f"//u:{SECRET}@{HOST}/d",
    f"postgresql:u:{SECRET}@{HOST}/d",
    f"postgresql:/u:{SECRET}@{HOST}/d",
    f"postgresql:///u:{SECRET}@{HOST}/d",
    f" postgresql://u:{SECRET}@{HOST}/d",
    f"postgresql://u:{SECRET}@{HOST}/d\n",
    f"POSTGRESQL://u:{SECRET}@{HOST}/d",
    f"postgresql+psycopg://u:{SECRET}@{HOST}/d",
    f"mysql://u:{SECRET}@{HOST}/d",
    f"sqlite://u:{SECRET}@/tmp/a.db",
    f"sqlite:////tmp/a.db?key={SECRET}",
    f"sqlite:////tmp/a.db#{SECRET}",
    f"jdbc:postgresql://{HOST}/d?user=u&password={SECRET}",
    SECRET,
]


@pytest.fixture(autouse=True)
def _no_second_try(monkeypatch):
    """Nobody answers there, however often it is tried."""
    once = Retry(seconds=0, first=0, longest=0)
    monkeypatch.setattr(opening, "OPENING", once)
    monkeypatch.setattr(retry, "OPENING", once)


def test_there_are_more_than_forty_spellings():
    assert len(set(SPELLINGS)) == len(SPELLINGS) >= 40


@pytest.mark.slow
def test_a_command_says_what_is_wrong_in_a_sentence_and_shows_no_spelling(deepwork, monkeypatch):
    leaks = []
    for spelling in SPELLINGS:
        monkeypatch.setenv("DEEPWORK_DATABASE_URL", spelling)
        result = deepwork("store", "info")
        if SECRET in result.out + result.err or not result.err.startswith("Error: ") or result.code != 1:
            leaks.append((spelling, result))
    assert leaks == []


@pytest.mark.slow
async def test_an_agent_and_the_log_get_a_sentence_and_no_spelling(project, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    project.write_job()
    leaks = []
    async with project.agent(state_store="sql") as agent:
        for spelling in SPELLINGS:
            monkeypatch.setenv("DEEPWORK_DATABASE_URL", spelling)
            caplog.clear()
            texts = [str(await agent.call("get_workflows")), await agent.refused("start_workflow", **START)]
            loud = [record for record in caplog.records if record.exc_info and record.levelno > logging.DEBUG]
            if SECRET in "".join([*texts, caplog.text]) or "internal error" in texts[1] or loud:
                leaks.append((spelling, texts, caplog.text))
    assert leaks == []


def test_doctor_says_what_is_wrong_and_shows_no_spelling(project, monkeypatch):
    leaks = []
    for spelling in SPELLINGS:
        monkeypatch.setenv("DEEPWORK_DATABASE_URL", spelling)
        findings: list[Any] = []
        try:
            findings += check(open_context("sql", project.root)).run()
        except DeepWorkError as error:  # which doctor shows; any other error fails this test
            findings.append(str(error))
        if SECRET in repr(findings) or not findings:
            leaks.append((spelling, findings))
    assert leaks == []


@pytest.mark.parametrize("spelling", [SPELLINGS[0], SPELLINGS[16], SPELLINGS[-1]])
def test_doctor_and_trust_show_none_of_a_setting_of_the_project(project, deepwork, spelling):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: {spelling!r}}}}}}}\n")
    results = [deepwork("doctor"), deepwork("trust", "--yes"), deepwork("doctor"), deepwork("store", "info")]
    assert [text for result in results for text in (result.out, result.err) if SECRET in text] == []
    assert "deepwork trust" in results[0].out
    assert results[3].code == 1


def test_doctor_warns_of_a_password_before_the_url_is_trusted(project, deepwork):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{SPELLINGS[0]}'}}}}}}\n")
    report = deepwork("doctor").out
    assert "has a password" in report
    assert "which you have not trusted" in report


def test_other_parameters_of_a_url_need_trust_anew_though_they_are_not_shown(project, deepwork):
    def configure(parameters):
        url = f"postgresql://u@{HOST}/d{parameters}"
        project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{url}'}}}}}}\n")
        return deepwork("store", "info").err

    assert "not trusted" in configure("?sslmode=verify-full")
    deepwork("trust", "--yes")
    assert "not trusted" not in configure("?sslmode=verify-full")
    assert "not trusted" in configure("?sslmode=disable")
    assert "not trusted" in configure("?sslmode=verify-full&hostaddr=127.0.0.2")


@pytest.mark.parametrize(
    ("password", "message", "expected"),
    [
        (SECRET, f'failed for "{SECRET}"', 'failed for "…"'),
        ("p@ss/w", "postgresql://u:p%40ss%2Fw@h and p@ss/w and p%40ss/w", "postgresql://u:…@h and … and …"),
        ("a b", "a+b is wrong", "the driver's message is not shown, because it may have the password"),
        ("x", "no secret", "no secret"),
        (None, "connection refused", "connection refused"),
    ],
)
def test_a_message_of_the_driver_is_shown_without_the_password(password, message, expected):
    engine = create_engine(URL.create("postgresql+psycopg", username="u", password=password, host="h"))
    assert cleaned(engine, message) == expected


def test_a_driver_that_quotes_the_password_tells_it_to_nobody_not_even_in_a_traceback(project, monkeypatch, caplog):
    """A driver may quote what it was told, as libpq does with a host that has a part of the password."""
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", SPELLINGS[0])
    caplog.set_level(logging.DEBUG)

    def fail(*_arguments, **options):
        raise OperationalError(f"cannot connect to postgresql://u:{options['password']}@h")

    monkeypatch.setattr("psycopg.connect", fail)
    monkeypatch.setattr("psycopg.Connection.connect", fail)
    engine = make_engine(choose_address(open_context("sql", project.root)))
    executor = execution.Executor(engine, opening.OPENING)
    with pytest.raises(DeepWorkError) as error:
        executor.read(lambda _: None)
    assert "cannot connect to postgresql://u:…@h" in str(error.value)
    cause = error.value
    while cause is not None:
        assert SECRET not in str(cause) + repr(cause)
        cause = cause.__cause__ or cause.__context__


def test_a_url_is_not_in_the_representation_of_what_holds_it(project, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", SPELLINGS[0])
    assert SECRET not in repr(choose_address(open_context("sql", project.root)))
