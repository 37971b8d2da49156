"""The schemas that editors use say the same as the server."""

import json

import jsonschema
import pytest
import yaml

from deepwork.cli.schema import KINDS, schema_text


@pytest.mark.parametrize("kind", ["job", "config"])
def test_init_writes_what_the_command_prints(run, project, kind):
    run("init")
    printed = run("schema", kind)
    assert printed.returncode == 0
    assert (project.root / f".deepwork/schema/{kind}.schema.json").read_text() == printed.stdout


def test_the_files_of_init_name_their_schemas_relatively_and_fit_them(run, project):
    run("init")
    for path, kind in ((".deepwork/config.yml", "config"), (".deepwork/jobs/project_tour/job.yml", "job")):
        file = project.root / path
        first = file.read_text().splitlines()[0]
        named = (file.parent / first.rpartition("=")[2]).resolve()
        assert named == project.root / f".deepwork/schema/{kind}.schema.json"
        jsonschema.validate(yaml.safe_load(file.read_text()), json.loads(named.read_text()))


@pytest.mark.parametrize(
    "change", [{"version": 1.0}, {"name": "With Space"}, {"colour": "red"}, {"steps": []}, {"summary": ""}]
)
def test_an_editor_refuses_what_the_server_refuses(project, change):
    job = yaml.safe_load((project.write_job() / "job.yml").read_text())
    schema = json.loads(schema_text("job"))
    jsonschema.validate(job, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**job, **change}, schema)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described_for_editors_that_show_it(kind):
    schema = json.loads(schema_text(kind))
    objects = [schema, *schema["$defs"].values()]
    keys = {(part["title"], key): field for part in objects for key, field in part.get("properties", {}).items()}
    assert len(keys) > 10
    for key, field in keys.items():
        described = field if "description" in field else schema["$defs"][field["$ref"].rpartition("/")[2]]
        assert described["description"].endswith((".", "…")), key
