BEGIN TRANSACTION;
CREATE TABLE alembic_version_deepwork (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_deepwork" VALUES('0001');
CREATE TABLE alembic_version_tracking (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_tracking_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_tracking" VALUES('0001');
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
INSERT INTO "deepwork_events" VALUES(1,0,'tracking','workflow:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","workflow_name":"Größe","workflow_status":"IN_PROGRESS","current_phase":0,"total_phases":2}');
INSERT INTO "deepwork_events" VALUES(2,0,'tracking','phase:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","phase_number":1,"phase_name":"p","phase_id":"ph_k963n92q41dk","status":"IN_PROGRESS","is_parallel":true,"tasks":{"total":0,"completed":0,"failed":0,"in_progress":0},"duration_seconds":0,"started_at":"2026-11-19T02:53:32.448Z","completed_at":null,"description":"d"}');
INSERT INTO "deepwork_events" VALUES(3,0,'tracking','workflow:updated','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","workflow_name":"Größe","workflow_status":"IN_PROGRESS","current_phase":1,"total_phases":2}');
INSERT INTO "deepwork_events" VALUES(4,0,'tracking','task:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"tt_smel6ib69f5n","phase_id":"ph_k963n92q41dk","name":"ended","goal":"g","status":"IN_PROGRESS","caller_type":"SUBAGENT","agent_name":"ann","summary":null,"duration_seconds":null,"started_at":"2026-11-19T02:53:32.448Z","completed_at":null,"manual_review_needed":false,"areas":["src"]}');
INSERT INTO "deepwork_events" VALUES(5,0,'tracking','task:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"tt_hs2s9294j2he","phase_id":"ph_k963n92q41dk","name":"running","goal":"g","status":"IN_PROGRESS","caller_type":"SUBAGENT","agent_name":"ann","summary":null,"duration_seconds":null,"started_at":"2026-11-19T02:53:32.448Z","completed_at":null,"manual_review_needed":false,"areas":["src"]}');
INSERT INTO "deepwork_events" VALUES(6,0,'tracking','task:updated','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"tt_smel6ib69f5n","phase_id":"ph_k963n92q41dk","name":"ended","goal":"g","status":"SUCCESS","caller_type":"SUBAGENT","agent_name":"ann","summary":"s","duration_seconds":0,"started_at":"2026-11-19T02:53:32.448Z","completed_at":"2026-11-19T02:53:32.448Z","manual_review_needed":false,"areas":["src"],"achievements":["a"],"tests_status":"PASSED"}');
INSERT INTO "deepwork_events" VALUES(7,0,'tracking','decision:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"dec_0iqut1hiz0q1","task_id":"tt_smel6ib69f5n","task_name":"ended","agent_name":"ann","category":"OTHER","question":"q","options_considered":["c"],"chosen":"c","reasoning":"r","trade_offs":null,"created_at":"2026-11-19T02:53:32.448Z"}');
INSERT INTO "deepwork_events" VALUES(8,0,'tracking','issue:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"iss_v0pjtghnc0la","task_id":"tt_smel6ib69f5n","task_name":"ended","agent_name":"ann","type":"BUG","description":"d","resolution":"r","created_at":"2026-11-19T02:53:32.448Z"}');
INSERT INTO "deepwork_events" VALUES(9,0,'tracking','milestone:created','tw_lgobnk6ts55f',1795056812448,'local','{"workflow_id":"tw_lgobnk6ts55f","id":"mil_blrigsv1tflh","task_id":"tt_smel6ib69f5n","task_name":"ended","agent_name":"ann","message":"m","progress":12.5,"metadata":{"b":[1,null],"a":"ü"},"created_at":"2026-11-19T02:53:32.448Z"}');
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
CREATE TABLE deepwork_requests (
	principal VARCHAR NOT NULL, 
	tool VARCHAR NOT NULL, 
	request_id VARCHAR NOT NULL, 
	arguments VARCHAR NOT NULL, 
	result TEXT, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (principal, tool, request_id)
);
CREATE TABLE deepwork_schemas (
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	oldest_release VARCHAR NOT NULL, 
	migrated_by VARCHAR NOT NULL, 
	migrated_at BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "deepwork_schemas" VALUES('deepwork',1,'1.0.0.dev0','1.0.0.dev0',1795056812286);
INSERT INTO "deepwork_schemas" VALUES('tracking',1,'1.0.0.dev0','1.0.0.dev0',1795056812286);
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
CREATE TABLE tracking_decisions (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	category VARCHAR NOT NULL, 
	question TEXT NOT NULL, 
	options_considered TEXT NOT NULL, 
	chosen TEXT NOT NULL, 
	reasoning TEXT NOT NULL, 
	trade_offs TEXT, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (position), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES tracking_workflows (id), 
	FOREIGN KEY(task_id) REFERENCES tracking_tasks (id)
);
INSERT INTO "tracking_decisions" VALUES(1,'dec_0iqut1hiz0q1','tw_lgobnk6ts55f','tt_smel6ib69f5n','OTHER','q','["c"]','c','r',NULL,1795056812448);
CREATE TABLE tracking_issues (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	type VARCHAR NOT NULL, 
	description TEXT NOT NULL, 
	resolution TEXT NOT NULL, 
	requires_human_review BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	resolved_at BIGINT, 
	resolved_by TEXT, 
	resolved_note TEXT, 
	PRIMARY KEY (position), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES tracking_workflows (id), 
	FOREIGN KEY(task_id) REFERENCES tracking_tasks (id)
);
INSERT INTO "tracking_issues" VALUES(1,'iss_v0pjtghnc0la','tw_lgobnk6ts55f','tt_smel6ib69f5n','BUG','d','r',1,1795056812448,NULL,NULL,NULL);
CREATE TABLE tracking_milestones (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	message TEXT NOT NULL, 
	progress TEXT, 
	metadata TEXT, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (position), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES tracking_workflows (id), 
	FOREIGN KEY(task_id) REFERENCES tracking_tasks (id)
);
INSERT INTO "tracking_milestones" VALUES(1,'mil_blrigsv1tflh','tw_lgobnk6ts55f','tt_smel6ib69f5n','m','12.5','{"b":[1,null],"a":"ü"}',1795056812448);
CREATE TABLE tracking_phases (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	description TEXT, 
	is_parallel BOOLEAN NOT NULL, 
	status VARCHAR NOT NULL, 
	summary TEXT, 
	started_at BIGINT NOT NULL, 
	completed_at BIGINT, 
	PRIMARY KEY (position), 
	CONSTRAINT tracking_phases_number UNIQUE (workflow_id, number), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES tracking_workflows (id)
);
INSERT INTO "tracking_phases" VALUES(1,'ph_k963n92q41dk','tw_lgobnk6ts55f',1,'p','d',1,'IN_PROGRESS',NULL,1795056812448,NULL);
CREATE TABLE tracking_snapshots (
	task_id VARCHAR NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (task_id), 
	FOREIGN KEY(task_id) REFERENCES tracking_tasks (id)
);
INSERT INTO "tracking_snapshots" VALUES('tt_hs2s9294j2he','{"type":"git","id":"0000000000000000000000000000000000000000","machine":"laptop","toplevel":"/projects/demo","states":{"a":null},"last":null,"warnings":[]}');
CREATE TABLE tracking_tasks (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	phase_id VARCHAR NOT NULL, 
	parent_task_id VARCHAR, 
	caller_type VARCHAR NOT NULL, 
	agent_name TEXT, 
	name TEXT NOT NULL, 
	goal TEXT NOT NULL, 
	areas TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	snapshot_id TEXT NOT NULL, 
	snapshot_type VARCHAR NOT NULL, 
	started_at BIGINT NOT NULL, 
	completed_at BIGINT, 
	summary TEXT, 
	achievements TEXT, 
	limitations TEXT, 
	next_steps TEXT, 
	manual_review_needed BOOLEAN NOT NULL, 
	packages_added TEXT, 
	tests_status VARCHAR, 
	files_changed TEXT, 
	verification TEXT, 
	PRIMARY KEY (position), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES tracking_workflows (id), 
	FOREIGN KEY(phase_id) REFERENCES tracking_phases (id), 
	FOREIGN KEY(parent_task_id) REFERENCES tracking_tasks (id)
);
INSERT INTO "tracking_tasks" VALUES(1,'tt_smel6ib69f5n','tw_lgobnk6ts55f','ph_k963n92q41dk',NULL,'SUBAGENT','ann','ended','g','["src"]','SUCCESS','0000000000000000000000000000000000000000','git',1795056812448,1795056812448,'s','["a"]',NULL,NULL,0,NULL,'PASSED','{"added":["src/é"],"modified":["b"],"deleted":[]}','{"scope_match":false,"unexpected_files":["b"],"changed_before_start":[],"warnings":["1 file(s) changed outside of the areas src"]}');
INSERT INTO "tracking_tasks" VALUES(2,'tt_hs2s9294j2he','tw_lgobnk6ts55f','ph_k963n92q41dk',NULL,'SUBAGENT','ann','running','g','["src"]','IN_PROGRESS','0000000000000000000000000000000000000000','git',1795056812448,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL);
CREATE TABLE tracking_workflows (
	position INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	name TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	profile VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	current_phase INTEGER NOT NULL, 
	total_phases INTEGER NOT NULL, 
	scope TEXT, 
	constraints TEXT, 
	created_at BIGINT NOT NULL, 
	completed_at BIGINT, 
	ended_as VARCHAR, 
	summary TEXT, 
	achievements TEXT, 
	limitations TEXT, 
	metrics TEXT, 
	PRIMARY KEY (position), 
	UNIQUE (id)
);
INSERT INTO "tracking_workflows" VALUES(1,'tw_lgobnk6ts55f','Größe','数据','SIMPLE','IN_PROGRESS',1,2,NULL,'c',1795056812448,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX deepwork_events_order ON deepwork_events (xid, seq);
CREATE INDEX deepwork_events_workflow ON deepwork_events (workflow_id, xid, seq);
CREATE INDEX deepwork_requests_at ON deepwork_requests (at);
CREATE INDEX deepwork_leases_holder ON deepwork_leases (holder);
CREATE INDEX deepwork_sessions_listing ON deepwork_sessions (machine, project, archived, updated_at);
CREATE INDEX deepwork_sessions_id ON deepwork_sessions (session_id);
CREATE INDEX tracking_workflows_status ON tracking_workflows (status);
CREATE INDEX tracking_tasks_workflow ON tracking_tasks (workflow_id, started_at, position);
CREATE INDEX tracking_tasks_phase ON tracking_tasks (phase_id);
CREATE INDEX tracking_tasks_parent ON tracking_tasks (parent_task_id);
CREATE INDEX tracking_decisions_workflow ON tracking_decisions (workflow_id, created_at, position);
CREATE INDEX tracking_issues_workflow ON tracking_issues (workflow_id, created_at, position);
CREATE INDEX tracking_issues_blockers ON tracking_issues (requires_human_review, resolved_at);
CREATE INDEX tracking_milestones_workflow ON tracking_milestones (workflow_id, created_at, position);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('deepwork_events',9);
COMMIT;
