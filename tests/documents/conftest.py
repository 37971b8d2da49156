"""What the tests of documents share."""

from __future__ import annotations

import pytest

from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError


@pytest.fixture(scope="session")
def refused():
    """Return the problems of a document that has to be refused, as `line: message`."""

    def refused(text, model=None):
        try:
            document = read_document(text if isinstance(text, bytes) else text.encode())
            document.validate(model)
        except DocumentError as error:
            return error.at("f").removeprefix("f:")
        raise AssertionError(f"was to be refused, but is {document.data!r}")

    return refused
