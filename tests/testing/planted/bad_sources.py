"""Job sources that each do one thing wrong, named with the one test that has to notice."""

from __future__ import annotations

import random
import threading
import time

import pytest

from deepwork.api import Job, JobFile, JobSource, Step, StepOutput, Workflow
from deepwork.errors import JobLoadError
from deepwork.testing import JobSourceContract


def job(folder, name, *, steps=("only",), instructions="only.md"):
    (folder / "only.md").write_text("Do it")
    step = Step(
        id="only",
        name="Only",
        description="The only step",
        instructions_file=instructions,
        outputs={"out": StepOutput(type="file", description="A file", required=True)},
        reviews=[],
    )
    definition = JobFile(
        name=name,
        version="1.0.0",
        summary=f"Job {name}",
        common_job_info_provided_to_all_steps_at_runtime=f"About {name}",
        steps=[step],
        workflows=[Workflow(name="main", summary="Does it", steps=list(steps))],
    )
    return Job(definition=definition, job_dir=folder)


class GoodSource(JobSource):
    """Does everything right; the others change one part of it."""

    breaks = None
    name = "planted"

    def __init__(self, folder, *, broken=False):
        self.items = [job(folder, name) for name in ("ant", "bee", "cat")]
        if broken:
            self.items.insert(1, JobLoadError("it is torn", job_name="torn", job_dir=folder / "torn"))

    def load(self):
        yield from self.items


class HasNoName(GoodSource):
    breaks = "test_it_has_a_name_and_a_rank"
    name = ""


class GivesNames(GoodSource):
    breaks = "test_it_gives_jobs_and_errors_only"

    def load(self):
        return [*self.items, "dog"]


class HasNothing(GoodSource):
    breaks = "test_it_has_a_good_job"

    def load(self):
        return []


class GivesOneTwice(GoodSource):
    breaks = "test_no_name_comes_twice"

    def load(self):
        return [*self.items, self.items[0]]


class FindsNothing(GoodSource):
    breaks = "test_a_job_is_found_by_its_name"

    def find(self, job_name):
        return None


class RaisesForUnknown(GoodSource):
    breaks = "test_an_unknown_job_is_none"

    def find(self, job_name):
        return {item.name: item for item in self.items}[job_name]


class Shuffles(GoodSource):
    breaks = "test_the_same_jobs_come_every_time_in_the_same_order"

    def load(self):
        return random.Random().sample(self.items, 3)


class IsUsedUp(GoodSource):
    breaks = "test_the_same_jobs_come_every_time_in_the_same_order"

    def load(self):
        items, self.items = self.items, []
        return items


class SharesItsPlace(GoodSource):
    breaks = "test_several_threads_may_ask_at_once"
    place = 0

    def load(self):
        """Walk through the jobs with one place for all threads."""
        self.place, jobs = 0, []
        while self.place < len(self.items):
            jobs.append(self.items[self.place])
            time.sleep(0.0001 if threading.current_thread() is not threading.main_thread() else 0)
            self.place += 1
        return jobs


class HasGhosts(GoodSource):
    breaks = "test_every_workflow_has_steps_of_its_job"

    def __init__(self, folder, *, broken=False):
        super().__init__(folder, broken=broken)
        self.items[0] = job(folder, "ant", steps=("only", "ghost"))


class LosesInstructions(GoodSource):
    breaks = "test_every_step_has_its_instructions_in_the_folder_of_the_job"

    def __init__(self, folder, *, broken=False):
        super().__init__(folder, broken=broken)
        self.items[0] = job(folder, "ant", instructions="steps/lost.md")


class Prints(GoodSource):
    breaks = "test_nothing_is_printed"

    def load(self):
        print("loading")
        return self.items


class RaisesForBroken(GoodSource):
    breaks = "test_a_broken_job_is_an_error_beside_the_good_ones"

    def load(self):
        for item in self.items:
            if isinstance(item, JobLoadError):
                raise item
            yield item


class HidesBroken(GoodSource):
    breaks = "test_a_broken_job_is_found_as_an_error"

    def find(self, job_name):
        return next((item for item in self.items if isinstance(item, Job) and item.name == job_name), None)


class Fixtures:
    source_class: type[GoodSource]

    @pytest.fixture
    def source(self, tmp_path):
        return self.source_class(tmp_path)

    @pytest.fixture
    def broken_source(self, tmp_path):
        return self.source_class(tmp_path, broken=True)


CONTRACTS = (JobSourceContract,)
for _source in [GoodSource, *GoodSource.__subclasses__()]:
    globals()[f"Test{_source.__name__}"] = type(
        f"Test{_source.__name__}", (Fixtures, *CONTRACTS), {"source_class": _source, "breaks": _source.breaks}
    )
