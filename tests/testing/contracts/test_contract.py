from __future__ import annotations

import pytest

from deepwork.testing import Contract


class SampleContract(Contract):
    def test_it_works(self):
        raise NotImplementedError


def test_a_contract_that_is_kept_is_accepted():
    class Fine(SampleContract):
        def test_something_of_its_own(self):
            pass

    assert Fine.test_it_works is SampleContract.test_it_works


def test_a_test_of_a_contract_cannot_be_overridden():
    with pytest.raises(TypeError) as error:

        class Cheat(SampleContract):
            def test_it_works(self):
                pass

    assert str(error.value) == (
        "Cheat.test_it_works overrides a test of a contract; only an @pytest.mark.xfail(reason=...) may, which says "
        "how the implementation falls short"
    )


@pytest.mark.parametrize("instead", [None, property(), pytest.mark.skip(reason="later")(lambda self: None)])
def test_a_test_of_a_contract_cannot_be_taken_out(instead):
    with pytest.raises(TypeError, match="overrides a test of a contract"):
        type("Cheat", (SampleContract,), {"test_it_works": instead})


def test_a_class_between_cannot_take_a_test_out_either():
    class Mixin:
        def test_it_works(self):
            pass

    with pytest.raises(TypeError, match="overrides a test of a contract"):
        type("Cheat", (Mixin, SampleContract), {})


def test_an_xfail_without_a_reason_is_no_excuse():
    with pytest.raises(TypeError, match="overrides a test of a contract"):

        class Cheat(SampleContract):
            @pytest.mark.xfail
            def test_it_works(self):
                pass


def test_an_xfail_with_a_reason_is_accepted():
    class Honest(SampleContract):
        @pytest.mark.xfail(reason="the moon is in the wrong phase")
        def test_it_works(self):
            super().test_it_works()

    assert Honest.test_it_works.pytestmark[0].name == "xfail"
