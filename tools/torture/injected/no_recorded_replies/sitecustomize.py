"""A planted bug: replies are not stored, so a call that is made again cannot be answered as before."""

from __future__ import annotations

from typing import Any

from deepwork.engine import engine
from deepwork.engine import replies as answers


def _forgotten(session: Any, step_id: str | None, outputs: Any) -> Any:
    steps = {name: step.model_copy(update={"reply": None}) for name, step in session.step_progress.items()}
    return _recorded_step(session.model_copy(update={"step_progress": steps}), step_id, outputs)


_recorded_step = answers.recorded_step
answers.recorded_step = engine.recorded_step = _forgotten
