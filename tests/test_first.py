import pytest

pytestmark = pytest.mark.anyio


async def test_an_agent_completes_a_workflow(project):
    project.write_job()
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        begin = await agent.start()
        assert begin["step_id"] == "a"
        await agent.finish({"a.md": "a.md"})
        done = await agent.finish({"b.md": "b.md"})
        assert done["status"] == "workflow_complete"
    async with project.stdio_agent() as agent:
        assert (await agent.start())["step_id"] == "a"
