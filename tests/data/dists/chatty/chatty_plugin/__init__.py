"""Its job source, its store and its runner print whenever they are used."""

from deepwork import hookimpl
from deepwork.api import JobSource, MemoryStore, ReviewRunner, ReviewRunnerSpec, StateStoreSpec, same_verdict


class ChattySource(JobSource):
    name = "chatty"

    def load(self):
        print("the source loads")  # noqa: T201
        return []


class ChattyStore(MemoryStore):
    async def find(self, **conditions):
        print("the store finds")  # noqa: T201
        return await super().find(**conditions)


class ChattyRunner(ReviewRunner):
    async def review(self, request):
        print("the runner reviews")  # noqa: T201
        return same_verdict(request.criteria, passed=True)


@hookimpl
def deepwork_job_sources():
    return [ChattySource()]


@hookimpl
def deepwork_state_stores():
    return [StateStoreSpec(name="chatty", open=lambda _workspace: ChattyStore())]


@hookimpl
def deepwork_review_runners():
    return [ReviewRunnerSpec(name="chatty", create=ChattyRunner, max_inline_files=5)]
