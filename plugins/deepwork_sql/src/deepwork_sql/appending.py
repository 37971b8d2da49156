"""How an event is written into the feed; `feed` says in which order events are read."""

from __future__ import annotations

from deepwork_sql.statement import Statement

_COLUMNS = ("source", "event", "workflow_id", "at", "principal", "data")
# The id of the transaction that writes, counted from where the feed of this cluster begins.
_XID = {
    "sqlite": "0",
    "postgresql": 'CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + (SELECT "offset" FROM deepwork_feed)',
}
_APPENDING = f"INSERT INTO deepwork_events (xid, {', '.join(_COLUMNS)}) VALUES ({{xid}}, :{', :'.join(_COLUMNS)})"

APPEND = Statement({dialect: _APPENDING.format(xid=xid) for dialect, xid in _XID.items()}, json=["data"])
