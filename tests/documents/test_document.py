"""Where in a document a problem stands, and which key was probably meant."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    inner: dict[str, Inner] = {}
    many: list[Inner] = []


def test_a_problem_stands_where_the_value_stands(refused):
    text = "inner:\n  one: {size: 1}\n  two:\n    size: big\nmany:\n  - size: 1\n  -\n    {}\n"
    assert refused(text, Outer).splitlines() == [
        "4: inner.two.size: should be a whole number (found 'big')",
        "f:8: many[1]: 'size' is missing",
    ]


def test_a_problem_of_an_overridden_key_stands_at_the_mapping_that_overrides(refused):
    text = "inner:\n  one: &one {size: 1}\n  two:\n    <<: *one\n    size: big\n"
    assert refused(text, Outer) == "5: inner.two.size: should be a whole number (found 'big')"


def test_a_problem_of_a_merged_key_stands_where_the_key_was_written(refused):
    text = "many:\n  - &one\n    size: big\n  - <<: *one\n"
    assert refused(text, Outer).splitlines() == [
        "3: many[0].size: should be a whole number (found 'big')",
        "f:3: many[1].size: should be a whole number (found 'big')",
    ]


def test_an_unknown_key_is_answered_with_the_nearest_one(refused):
    assert (
        refused("inner:\n  one: {size: 1, sise: 2}\n", Outer)
        == "2: inner.one: unknown key 'sise'; did you mean 'size'?"
    )
    assert refused("xyz: 1\n", Outer) == "1: unknown key 'xyz'; valid: inner, many"


def test_many_unknown_keys_are_refused_at_once(refused):
    lines = refused("".join(f"key{number}: 1\n" for number in range(20_000)), Outer).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "f: and 19,980 more"
