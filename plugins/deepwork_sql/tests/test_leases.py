"""Leases: one holder at a time, their end, and their fence."""

from __future__ import annotations

import anyio
import pytest

import deepwork_sql
from deepwork_sql import leases
from deepwork_sql.transaction import Transaction

pytestmark = pytest.mark.anyio

HOUR = 3_600_000


async def test_a_lease_is_held_until_it_is_given_back(database):
    first = await database.write(lambda tx: leases.take(tx, "t1", holder="ada", milliseconds=HOUR))
    held = await database.write(lambda tx: leases.take(tx, "t1", holder="bob", milliseconds=HOUR))
    assert (first.fence, held.holder, held.expires_at) == (1, "ada", first.expires_at)
    await database.write(lambda tx: leases.end(tx, "t1", fence=first.fence))
    second = await database.write(lambda tx: leases.take(tx, "t1", holder="bob", milliseconds=HOUR))
    assert second.fence == 2
    with pytest.raises(deepwork_sql.LeaseLost):
        await database.write(lambda tx: leases.check(tx, "t1", first.fence))


async def test_a_lease_that_ran_out_is_lost_before_anybody_takes_it(database):
    lease = await database.write(lambda tx: leases.take(tx, "t1", holder="ada", milliseconds=-1))
    for use in (
        lambda tx: leases.renew(tx, "t1", fence=lease.fence, milliseconds=1000),
        lambda tx: leases.check(tx, "t1", lease.fence),
        lambda tx: leases.end(tx, "t1", fence=lease.fence),
    ):
        with pytest.raises(deepwork_sql.LeaseLost, match="ran out"):
            await database.write(use)
    assert await database.read(lambda tx: leases.holder_of(tx, "t1")) is None
    assert await database.read(lambda tx: leases.expired(tx, "t", 10)) == [lease]
    assert await database.read(lambda tx: leases.expired(tx, "_", 10)) == []


async def test_a_lease_has_run_out_at_its_last_millisecond_for_everybody(database):
    """If it were expired and still held, reaping expired leases would find it again and again."""
    lease = await database.write(lambda tx: leases.take(tx, "t1", holder="ada", milliseconds=HOUR))

    def at_its_end(transaction):
        moment = Transaction(transaction.connection, clock=lease.expires_at)
        expired = leases.expired(moment, "t", 10)
        return expired, leases.live(moment, "t"), leases.take(moment, "t1", holder="bob", milliseconds=1000)

    expired, live, taken = await database.write(at_its_end)
    assert (expired, live) == ([lease], [])
    assert (taken.holder, taken.fence) == ("bob", lease.fence + 1)


async def test_all_leases_of_a_holder_are_renewed_at_once(database):
    for item in ("t1", "t2"):
        await database.write(lambda tx, item=item: leases.take(tx, item, holder="ada", milliseconds=HOUR))
    await database.write(lambda tx: leases.take(tx, "t3", holder="bob", milliseconds=HOUR))
    renewed = await database.write(lambda tx: leases.renew_all(tx, "ada", 10 * HOUR))
    assert [lease.item for lease in renewed] == ["t1", "t2"]
    assert renewed == await database.read(lambda tx: leases.of_holder(tx, "ada"))
    assert min(lease.expires_at for lease in renewed) > await database.read(lambda tx: tx.now) + 9 * HOUR


@pytest.mark.smoke
async def test_exactly_one_of_many_takers_at_once_gets_the_lease(database):
    answers = []

    async def take(holder):
        answers.append(await database.write(lambda tx: leases.take(tx, "t1", holder=holder, milliseconds=HOUR)))

    async with anyio.create_task_group() as tasks:
        for n in range(8):
            tasks.start_soon(take, f"h{n}")
    (lease,) = [answer for answer in answers if isinstance(answer, leases.Lease)]
    held = [answer for answer in answers if isinstance(answer, leases.Held)]
    assert {answer.holder for answer in held} == {lease.holder}
