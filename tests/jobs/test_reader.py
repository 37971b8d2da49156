"""Folders of jobs: any content of theirs, and what is remembered of it."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork.api import Job, JobReader, parse_job
from deepwork.errors import JobLoadError


@pytest.fixture
def jobs(project):
    """A folder with one good job, `good`."""
    project.write_job("good")
    return project.jobs


@pytest.fixture
def reader(jobs):
    return JobReader(jobs)


def broken(reader, name):
    """Read a job that has to be broken, and show that the good one is still there."""
    error = reader.read(name)
    assert isinstance(error, JobLoadError)
    assert (error.job_name, error.job_dir) == (name, reader.folder / name)
    assert str(reader.folder / name) in error.message
    assert error.message == parse_job(reader.folder / name).message
    assert name in reader.names()
    assert isinstance(reader.read("good"), Job)
    return error.message


def test_sub_folders_are_listed_sorted_and_files_are_not(project, reader):
    project.write_job("zebra")
    project.write_job("apple")
    project.write(".deepwork/jobs/README.md")
    assert reader.names() == ["apple", "good", "zebra"]


def test_a_missing_folder_has_no_jobs(tmp_path):
    reader = JobReader(tmp_path / "missing")
    assert reader.names() == []
    assert reader.read("good") is None


def test_a_file_instead_of_the_folder_has_no_jobs(tmp_path):
    (tmp_path / "jobs").write_text("")
    reader = JobReader(tmp_path / "jobs")
    assert reader.names() == []
    assert reader.read("good") is None


def test_a_sub_folder_without_a_job_file_is_no_job(jobs, reader):
    (jobs / "empty").mkdir()
    assert reader.read("empty") is None


def test_a_file_that_is_not_utf_8_is_an_error_with_its_line(project, reader):
    project.write(".deepwork/jobs/bad/job.yml", b"name: bad\nsummary: \xe4\n")
    assert "job.yml:2: byte 0xe4 is not UTF-8" in broken(reader, "bad")


def test_an_empty_file_is_an_error(project, reader):
    project.write(".deepwork/jobs/bad/job.yml", b"")
    assert "'name' is missing" in broken(reader, "bad")


def test_a_file_of_5_mib_is_an_error(project, reader):
    project.write(".deepwork/jobs/bad/job.yml", b"#" * 5 * 1024 * 1024)
    error = reader.read("bad")
    assert error.message == f"Failed to load: {reader.folder / 'bad' / 'job.yml'}: the file is larger than 4 MiB"
    assert str(reader.folder / "bad" / "job.yml") in parse_job(reader.folder / "bad").message


def test_a_file_of_a_terabyte_of_nothing_is_an_error(project, reader):
    with project.write(".deepwork/jobs/bad/job.yml").open("wb") as file:
        file.truncate(2**40)
    assert "larger than 4 MiB" in reader.read("bad").message


def test_a_pipe_is_an_error_at_once(jobs, reader):
    (jobs / "bad").mkdir()
    os.mkfifo(jobs / "bad" / "job.yml")
    assert broken(reader, "bad").endswith("job.yml is a pipe, not a regular file")


def test_a_socket_is_an_error(jobs, reader, monkeypatch):
    (jobs / "bad").mkdir()
    monkeypatch.chdir(jobs / "bad")  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("job.yml")
        assert broken(reader, "bad").endswith("job.yml is a socket or device, not a regular file")


def test_a_device_is_an_error(jobs, reader):
    (jobs / "bad").mkdir()
    try:
        os.mknod(jobs / "bad" / "job.yml", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root may make devices")
    assert broken(reader, "bad").endswith("job.yml is a device, not a regular file")


def test_a_folder_is_an_error(jobs, reader):
    (jobs / "bad" / "job.yml").mkdir(parents=True)
    assert broken(reader, "bad").endswith("job.yml is a folder, not a regular file")


@pytest.mark.usefixtures("bound_by_permissions")
def test_a_file_that_may_not_be_read_is_an_error(project, reader):
    project.write(".deepwork/jobs/bad/job.yml").chmod(0)
    assert broken(reader, "bad").endswith("job.yml cannot be read: Permission denied")


@pytest.mark.usefixtures("bound_by_permissions")
def test_a_folder_that_may_not_be_read_is_an_error(project, reader):
    project.write(".deepwork/jobs/bad/job.yml").parent.chmod(0)
    try:
        assert isinstance(reader.read("bad"), JobLoadError)
        assert isinstance(reader.read("good"), Job)
    finally:
        (reader.folder / "bad").chmod(0o700)


def test_a_link_to_nothing_is_an_error(jobs, reader):
    (jobs / "bad").mkdir()
    (jobs / "bad" / "job.yml").symlink_to("nothing.yml")
    assert broken(reader, "bad").endswith("job.yml not found")


def test_a_link_to_itself_is_an_error(jobs, reader):
    (jobs / "bad").mkdir()
    (jobs / "bad" / "job.yml").symlink_to("job.yml")
    assert "job.yml" in broken(reader, "bad")


def test_a_link_out_of_the_folder_of_its_job_is_an_error(project, jobs, reader):
    (jobs / "bad").mkdir()
    (jobs / "bad" / "job.yml").symlink_to("../good/job.yml")
    assert broken(reader, "bad").endswith("job.yml lies outside of the folder of its job")


def test_a_link_out_of_the_folder_of_jobs_is_an_error(project, jobs, reader):
    outside = project.write_job("outside", folder=project.root / "elsewhere")
    (jobs / "bad").mkdir()
    (jobs / "bad" / "job.yml").symlink_to(outside / "job.yml")
    assert broken(reader, "bad").endswith("job.yml lies outside of the folder of its job")


def test_a_job_folder_that_is_a_link_out_of_the_folder_of_jobs_is_an_error(project, jobs, reader):
    outside = project.write_job("outside", folder=project.root / "elsewhere")
    (jobs / "bad").symlink_to(outside)
    error = reader.read("bad")
    assert isinstance(error, JobLoadError)
    assert "lies outside" in error.message
    assert isinstance(reader.read("good"), Job)


def test_a_link_inside_of_the_folder_of_its_job_is_followed(project, jobs, reader):
    job_dir = project.write_job("linked")
    (job_dir / "job.yml").rename(job_dir / "v2.yml")
    (job_dir / "job.yml").symlink_to("v2.yml")
    assert isinstance(reader.read("linked"), Job)


@pytest.mark.parametrize("kind", ["file", "pipe", "link loop", "link to nothing"])
def test_anything_but_a_folder_is_not_a_job_and_hides_none(kind, jobs, reader):
    thing = jobs / "thing"
    if kind == "file":
        thing.write_text("")
    elif kind == "pipe":
        os.mkfifo(thing)
    else:
        thing.symlink_to("thing" if kind == "link loop" else "nothing")
    assert reader.names() == ["good"]
    assert reader.read("thing") is None


NOT_PLAIN = ["", ".", "..", "../good", "good/", "good/..", "/etc", "a\0b", "a\\b", "x" * 256, "ä" * 128, "\ud800"]


@pytest.mark.parametrize("name", [*NOT_PLAIN, os.fsdecode(b"\xff")])
def test_a_name_that_is_no_sub_folder_finds_nothing(name, reader):
    assert reader.read(name) is None


@given(st.text())
def test_any_name_is_answered(tmp_path_factory, name):
    reader = JobReader(tmp_path_factory.getbasetemp())
    assert reader.read(name) is None or isinstance(reader.read(name), JobLoadError)


def test_a_folder_whose_name_is_not_utf_8_is_an_error_that_can_be_shown(jobs, reader):
    name = os.fsdecode(b"bad\xff")
    (jobs / name).mkdir()
    (jobs / name / "job.yml").write_text("name: bad\n")
    assert reader.names() == [name, "good"]
    error = reader.read(name)
    assert isinstance(error, JobLoadError)
    assert "is not UTF-8" in error.message
    assert isinstance(reader.read("good"), Job)


def test_a_folder_of_jobs_that_leads_out_of_the_project_has_none(project, tmp_path):
    project.write_job("outside", folder=tmp_path / "elsewhere")
    project.jobs.parent.mkdir()
    project.jobs.symlink_to(tmp_path / "elsewhere")
    reader = JobReader(project.jobs, inside=project.root)
    assert reader.escapes
    assert reader.names() == []
    assert reader.read("outside") is None


# What is remembered.


def test_equal_bytes_are_not_parsed_again(project, jobs, reader):
    job = reader.read("good")
    content = (jobs / "good" / "job.yml").read_bytes()
    (jobs / "good" / "job.yml").write_bytes(content)
    assert reader.read("good") is job


def test_an_error_is_remembered_too(project, reader):
    project.write(".deepwork/jobs/bad/job.yml", "name: [")
    assert reader.read("bad") is reader.read("bad")


def test_a_changed_file_is_seen_by_the_next_call(project, reader):
    assert reader.read("good").definition.summary == "Job good"
    project.write_job("good", summary="Another one")
    assert reader.read("good").definition.summary == "Another one"


def test_many_edits_of_equal_size_within_a_moment_are_all_seen(jobs, reader):
    """Several of them fall between two ticks of the file system's clock."""
    file = jobs / "good" / "job.yml"
    content = file.read_bytes()
    for number in range(100):
        file.write_bytes(content.replace(b"Job good", b"Job %04d" % number))
        assert reader.read("good").definition.summary == f"Job {number:04}"


def test_an_edit_that_keeps_size_and_times_is_seen(project, jobs, reader):
    file = jobs / "good" / "job.yml"
    before = file.stat()
    reader.read("good")
    project.write_job("good", summary="Job GOOD")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert reader.read("good").definition.summary == "Job GOOD"


def test_a_change_of_a_file_that_was_long_the_same_is_seen(project, jobs, reader):
    """After two seconds the clock of the file system can tell an edit from none, so the file is not opened then."""
    reader.read("good")
    time.sleep(2.1)
    settled = reader.read("good")
    assert reader.read("good") is settled
    project.write_job("good", summary="Job GOOD")
    os.utime(jobs / "good" / "job.yml", ns=(0, (jobs / "good" / "job.yml").stat().st_mtime_ns))
    assert reader.read("good").definition.summary == "Job GOOD"


def test_an_added_job_is_seen_by_the_next_call(project, reader):
    assert reader.read("new") is None
    project.write_job("new")
    assert reader.names() == ["good", "new"]
    assert isinstance(reader.read("new"), Job)


def test_a_removed_job_is_gone_at_the_next_call(jobs, reader):
    reader.read("good")
    (jobs / "good" / "job.yml").unlink()
    assert reader.read("good") is None


def test_a_replaced_job_is_seen_by_the_next_call(project, jobs, reader):
    reader.read("good")
    (jobs / "good").rename(jobs / "old")
    project.write_job("good", summary="Another one")
    assert reader.read("good").definition.summary == "Another one"
    assert reader.read("old").definition.summary == "Job good"


def test_a_broken_job_that_is_mended_is_a_job_at_the_next_call(project, reader):
    project.write(".deepwork/jobs/bad/job.yml", "name: [")
    assert isinstance(reader.read("bad"), JobLoadError)
    project.write_job("bad")
    assert isinstance(reader.read("bad"), Job)


def test_warnings_are_logged_once_for_each_content(project, reader, caplog):
    caplog.set_level(logging.WARNING, "deepwork.jobs")
    job_dir = project.write_job("other")
    job_dir = job_dir.rename(job_dir.parent / "odd")
    for _ in range(3):
        reader.read("odd")
    assert caplog.messages == [f"{job_dir / 'job.yml'}:1: the job is named 'other', its folder 'odd'"]


def test_many_threads_read_while_jobs_change(project, reader):
    stop = threading.Event()
    for number in range(5):
        project.write_job(f"job{number}")

    def read():
        readings = 0
        while not stop.is_set():
            for name in reader.names():
                item = reader.read(name)
                assert item is None or isinstance(item, Job | JobLoadError)
                readings += 1
        return readings

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for number in range(40):
                project.write_job(f"job{number % 5}", summary=f"Version {number}")
                (project.jobs / f"job{(number + 1) % 5}" / "job.yml").unlink(missing_ok=True)
        finally:
            stop.set()
        assert all(each.result() for each in readers)
    assert reader.read("job4").definition.summary == "Version 39"
