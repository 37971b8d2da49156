"""What an operator's OpenTelemetry sees: the step of each call, and a span for each review."""

from __future__ import annotations

from functools import cache

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deepwork import hookimpl
from deepwork.api import NeedsWork, Passed, ReviewRunnerSpec, RunnerUnavailable
from deepwork.testing import ScriptedRunner, review, step

pytestmark = pytest.mark.anyio


@cache
def exporter_of_this_process():
    """OpenTelemetry takes one provider in the life of a process, as an operator's would be."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans():
    """Return the ended spans of a name, oldest first."""
    exporter = exporter_of_this_process()
    exporter.clear()

    def spans(name):
        # The client in this process has spans of its own.
        ended = [span for span in exporter.get_finished_spans() if span.name == name]
        return [span for span in ended if name == "deepwork.review" or span.kind is trace.SpanKind.SERVER]

    return spans


def reviewed_by(*answers):
    """Return the arguments of a server whose reviewer gives these answers."""

    class Plugin:
        @hookimpl
        def deepwork_review_runners(self):
            runner = ScriptedRunner(answers)
            yield ReviewRunnerSpec(name="scripted", create=lambda: runner, max_inline_files=5)

    return {"extra_plugins": {"scripted": Plugin()}, "external_runner": "scripted"}


def attributes(span):
    return {name: value for name, value in span.attributes.items() if name.startswith("deepwork.")}


async def start(agent):
    started = await agent.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
    return started["begin_step"]["session_id"]


async def test_the_span_of_each_call_names_session_workflow_step_and_attempt(project, spans):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    async with project.agent(**reviewed_by(NeedsWork("Weak."), Passed("Good."))) as agent:
        session_id = await start(agent)
        project.write("a.md")
        await agent.call("finished_step", outputs={"a.md": "a.md"})
        project.write("a.md", "better")
        await agent.call("finished_step", outputs={"a.md": "a.md"})
        await agent.call("abort_workflow", explanation="enough")
    common = {"deepwork.session_id": session_id, "deepwork.workflow": "demo/main"}
    [started] = spans("tools/call start_workflow")
    assert attributes(started) == {**common, "deepwork.step_id": "a", "deepwork.attempt": 0}
    assert [attributes(span) for span in spans("tools/call finished_step")] == [
        {**common, "deepwork.step_id": "a", "deepwork.attempt": attempt} for attempt in (1, 2)
    ]
    [aborted] = spans("tools/call abort_workflow")
    assert attributes(aborted) == {**common, "deepwork.step_id": "b", "deepwork.attempt": 0}


async def test_a_review_is_a_span_within_the_call_that_began_it(project, spans):
    project.write_job(steps=[step("a", reviews=[review()])])
    async with project.agent(**reviewed_by(NeedsWork("Weak."))) as agent:
        session_id = await start(agent)
        project.write("a.md")
        await agent.call("finished_step", outputs={"a.md": "a.md"})
    [span], [called] = spans("deepwork.review"), spans("tools/call finished_step")
    assert span.parent.span_id == called.context.span_id
    assert attributes(span) == {
        "deepwork.session_id": session_id,
        "deepwork.workflow": "demo/main",
        "deepwork.step_id": "a",
        "deepwork.attempt": 1,
        "deepwork.decision": "failed",
    }


async def test_a_refused_call_names_the_step_that_it_was_about(project, spans):
    project.write_job()
    async with project.agent() as agent:
        session_id = await start(agent)
        await agent.refused("finished_step", outputs={"a.md": "missing.md"})
    [refused] = spans("tools/call finished_step")
    assert attributes(refused)["deepwork.session_id"] == session_id
    assert attributes(refused)["deepwork.step_id"] == "a"
    assert refused.status.status_code is trace.StatusCode.ERROR


async def test_a_step_without_a_review_has_no_span_of_one(project, spans):
    project.write_job(steps=[step("a")])
    async with project.agent() as agent:
        await start(agent)
        project.write("a.md")
        await agent.call("finished_step", outputs={"a.md": "a.md"})
    assert spans("deepwork.review") == []
    assert len(spans("tools/call finished_step")) == 1


async def test_a_reviewer_that_cannot_work_ends_the_span_with_what_was_decided(project, spans):
    project.write_job(steps=[step("a", reviews=[review()])])
    async with project.agent(**reviewed_by(RunnerUnavailable("no reviewer"))) as agent:
        await start(agent)
        project.write("a.md")
        await agent.call("finished_step", outputs={"a.md": "a.md"})
    [span] = spans("deepwork.review")
    assert span.attributes["deepwork.decision"] == "no_verdict"
