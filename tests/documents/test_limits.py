"""The size, depth and number of values of a document are bounded, with aliases counted in full."""

from __future__ import annotations

from deepwork.documents.load import read_document


def nested(depth):
    return "a: " + "[" * (depth - 1) + "]" * (depth - 1)


def test_64_levels_are_read_and_65_refused(refused):
    assert read_document(nested(64).encode())
    assert refused(nested(65)) == "1: nested deeper than 64 levels, aliases included"


def test_depth_counts_through_aliases(refused):
    def aliased(depth):
        return f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * (depth - 41)}*a{']' * (depth - 41)}"

    assert read_document(aliased(64).encode())
    assert refused(aliased(65)) == "2: nested deeper than 64 levels, aliases included"


def test_an_alias_that_contains_itself_is_refused(refused):
    assert refused("a: &a [1, *a]\n") == "1: alias *a contains itself"
    assert refused("a: &a {b: {c: *a}}\n") == "1: alias *a contains itself"


def test_100000_values_are_read_and_more_refused(refused):
    assert len(read_document(f"[{'a,' * 99_999}]".encode()).data) == 99_999
    assert refused(f"[{'a,' * 100_000}]") == "1: more than 100,000 values, aliases counted in full"


def test_values_count_as_often_as_aliases_repeat_them(refused):
    def aliased(times):
        return f"a: &a [{'x,' * 999}]\nb: [{'*a,' * times}]\n"

    assert read_document(aliased(98).encode())
    assert refused(aliased(99)) == "2: more than 100,000 values, aliases counted in full"


def test_text_counts_as_often_as_aliases_repeat_it(refused):
    """Else a few aliases of one long text become gigabytes where the job is stored or answered."""
    text = f"a: &a {'x' * 1_000_000}\nb: [*a, *a, *a, *a]\n"
    assert refused(text) == "2: more than 4,194,304 characters, aliases counted in full"


def test_4_mib_are_read_and_more_refused(refused):
    assert read_document(b"a: 1\n#".ljust(4 * 1024 * 1024, b"#")).data == {"a": 1}
    assert refused(b"a: 1\n#".ljust(4 * 1024 * 1024 + 1, b"#")) == " the file is larger than 4 MiB"


def test_a_hundred_directives_are_read_and_more_refused(refused):
    """Each is compared with all before it, so hundreds of thousands would take minutes."""
    lines = "".join(f"%TAG !t{number}! x\n" for number in range(101))
    assert read_document(f"#\n{lines[: lines.index('%TAG !t100!')]}---\na: 1\n".encode()).data == {"a": 1}
    assert refused(f"#\n{lines}---\na: 1\n") == " more than 100 lines begin with %"
