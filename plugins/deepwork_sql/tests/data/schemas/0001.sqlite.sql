BEGIN TRANSACTION;
CREATE TABLE alembic_version_deepwork (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_deepwork" VALUES('0001');
CREATE TABLE deepwork_events (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	xid BIGINT NOT NULL, 
	source VARCHAR NOT NULL, 
	event VARCHAR NOT NULL, 
	workflow_id VARCHAR, 
	at BIGINT NOT NULL, 
	principal VARCHAR, 
	data TEXT NOT NULL
);
INSERT INTO "deepwork_events" VALUES(1,0,'core','session:started','s1',1795056056432,'local','{"at":"2026-01-01T12:00:00.000000+00:00","kind":"started","step_id":null,"detail":{"n":1}}');
INSERT INTO "deepwork_events" VALUES(2,0,'acme','task:done','wf_1',1795056056432,'ada','{"b":[1,null],"a":"ü"}');
CREATE TABLE deepwork_feed (
	only BOOLEAN NOT NULL, 
	"offset" BIGINT NOT NULL, 
	PRIMARY KEY (only)
);
INSERT INTO "deepwork_feed" VALUES(1,0);
CREATE TABLE deepwork_leases (
	item VARCHAR NOT NULL, 
	fence BIGINT NOT NULL, 
	holder VARCHAR, 
	expires_at BIGINT NOT NULL, 
	PRIMARY KEY (item)
);
INSERT INTO "deepwork_leases" VALUES('t1',1,'ada',1795056057432);
CREATE TABLE deepwork_requests (
	principal VARCHAR NOT NULL, 
	tool VARCHAR NOT NULL, 
	request_id VARCHAR NOT NULL, 
	arguments VARCHAR NOT NULL, 
	result TEXT, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (principal, tool, request_id)
);
INSERT INTO "deepwork_requests" VALUES('ada','claim','r1','e5d5f7c1d225fd6b13623ebb1b5b9d075c705659f81868b1e37005a0923b0346','{"task":"t1"}',1795056056432);
CREATE TABLE deepwork_schemas (
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	oldest_release VARCHAR NOT NULL, 
	migrated_by VARCHAR NOT NULL, 
	migrated_at BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "deepwork_schemas" VALUES('deepwork',1,'1.0.0.dev0','1.0.0.dev0',1795056056381);
CREATE TABLE deepwork_sessions (
	machine VARCHAR NOT NULL, 
	project VARCHAR NOT NULL, 
	session_id VARCHAR NOT NULL, 
	revision BIGINT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	status VARCHAR NOT NULL, 
	updated_at VARCHAR NOT NULL, 
	history_length INTEGER NOT NULL, 
	archived BOOLEAN NOT NULL, 
	damaged BOOLEAN NOT NULL, 
	summary TEXT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (machine, project, session_id)
);
INSERT INTO "deepwork_sessions" VALUES('laptop','/projects/demo','s1',1,1,'active','2026-01-01T12:00:00.000000+00:00',1,0,0,'{"session_id":"s1","job_name":"demo","workflow_name":"main","step_id":"a","goal":"Größe, 数据","status":"active","started_at":"2026-01-01T12:00:00.000000+00:00","updated_at":"2026-01-01T12:00:00.000000+00:00","principal":"local"}','{"schema_version":1,"revision":1,"session_id":"s1","status":"active","job_name":"demo","workflow_name":"main","current_step_id":"a","started_at":"2026-01-01T12:00:00.000000+00:00","updated_at":"2026-01-01T12:00:00.000000+00:00","completed_at":null,"principal":"local","goal":"Größe, 数据","instance_id":null,"current_entry_index":0,"abort_reason":null,"branch_name":null,"parents":[],"step_progress":{},"abort_reply":null,"definition":null,"history":[{"at":"2026-01-01T12:00:00.000000+00:00","kind":"started","step_id":null,"detail":{"n":1}}]}');
CREATE INDEX deepwork_events_order ON deepwork_events (xid, seq);
CREATE INDEX deepwork_events_workflow ON deepwork_events (workflow_id, xid, seq);
CREATE INDEX deepwork_requests_at ON deepwork_requests (at);
CREATE INDEX deepwork_leases_holder ON deepwork_leases (holder);
CREATE INDEX deepwork_sessions_listing ON deepwork_sessions (machine, project, archived, updated_at);
CREATE INDEX deepwork_sessions_id ON deepwork_sessions (session_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('deepwork_events',2);
COMMIT;
