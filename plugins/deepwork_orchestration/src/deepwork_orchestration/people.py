"""What of the plans waits for people: tasks that only they can do, and plans in which nothing can go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork_orchestration import agents, claims, messages
from deepwork_orchestration.models import Agent
from deepwork_orchestration.sql import CUT, one_of, sql
from deepwork_orchestration.states import BEGUN, CLOSED, HUMAN
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql.shares import in_turns

_CAPABILITIES = "CAST(t.required_capabilities AS TEXT)"
_FOR_PEOPLE = (
    "SELECT t.id, t.workflow_id, w.principal, t.updated_at, t.number FROM orchestration_tasks AS t "
    "JOIN orchestration_workflows AS w ON w.id = t.workflow_id "
    f"WHERE {one_of('t.status', ('pending', *BEGUN))} AND t.open_dependencies = 0 "
    f"AND NOT {one_of('w.status', CLOSED)} AND replace({_CAPABILITIES}, '\"{HUMAN}\"', '') <> {_CAPABILITIES}"
)
_TURNS_OF_TASKS = in_turns(_FOR_PEOPLE, order=("updated_at", "number"), groups=("principal", "workflow_id"))
_TASKS = sql(
    "SELECT t.id, t.workflow_id, w.name AS workflow_name, t.name, t.assigned_agent_id, t.updated_at, chosen.total, "
    f"{CUT.format('t.description')} AS description, {CUT.format('CAST(t.plan AS TEXT)')} AS plan_text "
    f"FROM orchestration_tasks AS t JOIN ({_TURNS_OF_TASKS} LIMIT :limit) AS chosen ON chosen.id = t.id "
    "JOIN orchestration_workflows AS w ON w.id = t.workflow_id ORDER BY chosen.updated_at, chosen.number"
)

_OF_PLAN = "FROM orchestration_tasks AS t WHERE t.workflow_id = w.id"
# A task for a person goes on, too: then that is what the plan waits for.
_GOES_ON = (
    f"t.assigned_agent_id IS NOT NULL OR {one_of('t.status', BEGUN)} "
    "OR (t.status = 'pending' AND t.open_dependencies = 0)"
)
_STUCK = (
    f"w.status = 'in_progress' AND EXISTS (SELECT 1 {_OF_PLAN} AND t.status = 'failed') "
    f"AND NOT EXISTS (SELECT 1 {_OF_PLAN} AND ({_GOES_ON}))"
)
_IS_STUCK = sql(f"SELECT w.id FROM orchestration_workflows AS w WHERE w.id = :workflow_id AND {_STUCK}")
_STUCK_PLANS = (
    "SELECT w.id, w.name AS workflow_name, w.principal, w.number, "
    f"(SELECT max(t.updated_at) {_OF_PLAN}) AS since, "
    f"(SELECT count(*) {_OF_PLAN} AND t.status = 'pending') AS waiting "
    f"FROM orchestration_workflows AS w WHERE {_STUCK}"
)
_FAILED_TASKS = (
    f"SELECT t.id, t.workflow_id, t.name, {CUT.format('t.error')} AS error, "
    "row_number() OVER (PARTITION BY t.workflow_id ORDER BY t.sequence, t.name, t.number) AS place, "
    "count(*) OVER (PARTITION BY t.workflow_id) AS failed "
    "FROM orchestration_tasks AS t WHERE t.status = 'failed' AND t.workflow_id IN (SELECT id FROM chosen)"
)
_FAILED_OF_STUCK = sql(
    f"WITH chosen AS ({in_turns(_STUCK_PLANS, order=('since', 'number'), groups=('principal',))} LIMIT :limit) "
    "SELECT listed.*, chosen.workflow_name, chosen.since, chosen.waiting, chosen.total "
    f"FROM ({_FAILED_TASKS}) AS listed JOIN chosen ON chosen.id = listed.workflow_id "
    "WHERE listed.place <= :tasks ORDER BY chosen.since, chosen.number, listed.place"
)


def tasks_for_people(transaction: PlanTransaction, limit: int, characters: int = 0) -> tuple[Sequence[Any], int]:
    """Return tasks that only a person can do and that wait for no other task, and how many there are in all.

    They are the oldest, with a share for each principal and each plan of it, and so many characters of their texts.
    """
    tasks = transaction.rows(_TASKS, limit=limit, characters=characters)
    return tasks, tasks[0].total if tasks else 0


def failed_of_stuck_plans(transaction: PlanTransaction, limit: int, characters: int, tasks: int) -> Sequence[Any]:
    """Return the failed tasks of plans in which nothing can go on, plan by plan, the longest stuck first.

    Each principal has a share of the plans, and `total` says how many there are; a plan has its first tasks,
    and `failed` says how many have failed. So many characters of an error are read.
    """
    return transaction.rows(_FAILED_OF_STUCK, limit=limit, characters=characters, tasks=tasks)


def is_stuck(transaction: PlanTransaction, workflow_id: str) -> bool:
    """True if nothing can go on in a plan before a decision about its failed tasks."""
    return transaction.row(_IS_STUCK, workflow_id=workflow_id) is not None


def waits_for_person(transaction: PlanTransaction, agent_id: str) -> bool:
    """True if an agent can do nothing before a person acts.

    That is so when a person has not read its question, or when all that is left to do now is for people.
    """
    agent = transaction.get(Agent, agent_id)
    if messages.has_unread_question(transaction, agent_id):
        return True
    if not tasks_for_people(transaction, 1)[0] or claims.has_work(transaction, agent):
        return False
    return not claims.holders(transaction) - {person.id for person in agents.people(transaction)}
