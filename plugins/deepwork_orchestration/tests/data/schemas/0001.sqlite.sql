BEGIN TRANSACTION;
CREATE TABLE alembic_version_deepwork (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_deepwork" VALUES('0001');
CREATE TABLE alembic_version_orchestration (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_orchestration_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_orchestration" VALUES('0001');
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
INSERT INTO "deepwork_events" VALUES(1,0,'orchestration','workflow:created','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"wf_a0zi3nsrehh5","name":"Größe","status":"planning","created_at":1795066242005,"updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(2,0,'orchestration','workflow:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"wf_a0zi3nsrehh5","name":"Größe","status":"ready","created_at":1795066242005,"updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(3,0,'orchestration','agent:registered',NULL,1795066242005,'local','{"id":"ag_vf3xt7isd4hx","name":"ann","runtime":"custom","role":"worker"}');
INSERT INTO "deepwork_events" VALUES(4,0,'orchestration','task:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_elqenutufycy","name":"first","status":"pending","workflow_id":"wf_a0zi3nsrehh5","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_st1uf136usob","updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(5,0,'orchestration','workspace:created','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"ws_st1uf136usob","workflow_id":"wf_a0zi3nsrehh5","path":"/projects/demo/w","branch":"b","base_branch":null,"status":"active","merge_commit":null,"created_at":1795066242005,"updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(6,0,'orchestration','task:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_elqenutufycy","name":"first","status":"pending","workflow_id":"wf_a0zi3nsrehh5","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_st1uf136usob","updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(7,0,'orchestration','task:claimed','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_elqenutufycy","name":"first","assigned_agent_id":"ag_vf3xt7isd4hx","claimed_at":1795066242005,"claimed_by":"local","fence":1}');
INSERT INTO "deepwork_events" VALUES(8,0,'orchestration','workflow:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"wf_a0zi3nsrehh5","name":"Größe","status":"in_progress","created_at":1795066242005,"updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(9,0,'orchestration','task:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_elqenutufycy","name":"first","status":"planning","workflow_id":"wf_a0zi3nsrehh5","sequence":1,"parallel_group":"g","assigned_agent_id":"ag_vf3xt7isd4hx","workspace_id":"ws_st1uf136usob","updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(10,0,'orchestration','task:updated','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_elqenutufycy","name":"first","status":"completed","workflow_id":"wf_a0zi3nsrehh5","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_st1uf136usob","updated_at":1795066242005}');
INSERT INTO "deepwork_events" VALUES(11,0,'orchestration','task:claimed','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"tk_ck5hf66athj0","name":"second","assigned_agent_id":"ag_vf3xt7isd4hx","claimed_at":1795066242005,"claimed_by":"local","fence":1}');
INSERT INTO "deepwork_events" VALUES(12,0,'orchestration','checkpoint:added','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"cp_85nsw2795cnc","task_id":"tk_ck5hf66athj0","sequence":1,"type":"progress","summary":"half"}');
INSERT INTO "deepwork_events" VALUES(13,0,'orchestration','message:sent','wf_a0zi3nsrehh5',1795066242005,'local','{"id":"msg_6j5mdp31614v","sender_id":"ag_vf3xt7isd4hx","recipient_id":"ag_vf3xt7isd4hx","message_type":"query","subject":null,"priority":"normal","status":"unread","workflow_id":"wf_a0zi3nsrehh5","task_id":null,"reply_to_id":null,"thread_id":"thr_c69g0jytgdwl","created_at":1795066242005,"read_at":null,"expires_at":null}');
INSERT INTO "deepwork_events" VALUES(14,0,'orchestration','template:created',NULL,1795066242005,'local','{"id":"tmpl_rp0xqa69am1k","name":"of it","description":null}');
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
INSERT INTO "deepwork_leases" VALUES('orchestration/task/tk_elqenutufycy',1,NULL,1795066242005);
INSERT INTO "deepwork_leases" VALUES('orchestration/task/tk_ck5hf66athj0',1,'ag_vf3xt7isd4hx',4948666242005);
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
INSERT INTO "deepwork_schemas" VALUES('deepwork',1,'1.0.0.dev0','1.0.0.dev0',1795066241882);
INSERT INTO "deepwork_schemas" VALUES('orchestration',1,'1.0.0.dev0','1.0.0.dev0',1795066241882);
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
CREATE TABLE orchestration_agents (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	name TEXT NOT NULL, 
	runtime TEXT NOT NULL, 
	role TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	capabilities TEXT, 
	current_task_id VARCHAR, 
	workspace_path TEXT, 
	last_heartbeat BIGINT NOT NULL, 
	metadata TEXT, 
	lost_task_ids TEXT, 
	principal TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id)
);
INSERT INTO "orchestration_agents" VALUES(1,'ag_vf3xt7isd4hx','ann','custom','worker','busy',NULL,'tk_ck5hf66athj0',NULL,1795066242005,'{"b":[1,null],"a":"ü"}',NULL,'local',1795066242005,1795066242005);
CREATE TABLE orchestration_checkpoints (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	sequence BIGINT NOT NULL, 
	checkpoint_type TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	detail TEXT, 
	files_changed TEXT, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (task_id, sequence), 
	UNIQUE (id), 
	FOREIGN KEY(task_id) REFERENCES orchestration_tasks (id)
);
INSERT INTO "orchestration_checkpoints" VALUES(1,'cp_85nsw2795cnc','tk_ck5hf66athj0',1,'progress','half','{"n":1}',NULL,1795066242005);
CREATE TABLE orchestration_dependencies (
	task_id VARCHAR NOT NULL, 
	depends_on_id VARCHAR NOT NULL, 
	type TEXT NOT NULL, 
	PRIMARY KEY (task_id, depends_on_id), 
	FOREIGN KEY(task_id) REFERENCES orchestration_tasks (id), 
	FOREIGN KEY(depends_on_id) REFERENCES orchestration_tasks (id)
);
INSERT INTO "orchestration_dependencies" VALUES('tk_ck5hf66athj0','tk_elqenutufycy','blocks');
CREATE TABLE orchestration_messages (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	sender_id VARCHAR, 
	recipient_id VARCHAR NOT NULL, 
	message_type TEXT NOT NULL, 
	subject TEXT, 
	body TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	workflow_id VARCHAR, 
	task_id VARCHAR, 
	reply_to_id VARCHAR, 
	thread_id VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	read_at BIGINT, 
	expires_at BIGINT, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	FOREIGN KEY(sender_id) REFERENCES orchestration_agents (id), 
	FOREIGN KEY(recipient_id) REFERENCES orchestration_agents (id)
);
INSERT INTO "orchestration_messages" VALUES(1,'msg_6j5mdp31614v','ag_vf3xt7isd4hx','ag_vf3xt7isd4hx','query',NULL,'{"text":"?"}','normal','unread','wf_a0zi3nsrehh5',NULL,NULL,'thr_c69g0jytgdwl',1795066242005,NULL,NULL);
CREATE TABLE orchestration_repositories (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	name TEXT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	UNIQUE (path)
);
INSERT INTO "orchestration_repositories" VALUES(1,'rp_c5urifhtwv8b','/projects/demo',NULL,1795066242005,1795066242005);
CREATE TABLE orchestration_tasks (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	description TEXT, 
	status VARCHAR NOT NULL, 
	sequence BIGINT NOT NULL, 
	parallel_group VARCHAR, 
	"plan" TEXT, 
	plan_summary TEXT, 
	context TEXT, 
	outcome TEXT, 
	outcome_detail TEXT, 
	error TEXT, 
	required_capabilities TEXT, 
	open_dependencies INTEGER NOT NULL, 
	workspace_id VARCHAR, 
	assigned_agent_id VARCHAR, 
	claimed_at BIGINT, 
	claimed_by TEXT, 
	fence BIGINT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (workflow_id, name), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES orchestration_workflows (id)
);
INSERT INTO "orchestration_tasks" VALUES(1,'tk_elqenutufycy','wf_a0zi3nsrehh5','first','Größe','completed',1,'g',NULL,NULL,NULL,'done',NULL,NULL,NULL,0,'ws_st1uf136usob',NULL,NULL,NULL,NULL,1795066242005,1795066242005);
INSERT INTO "orchestration_tasks" VALUES(2,'tk_ck5hf66athj0','wf_a0zi3nsrehh5','second','d','pending',2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,'ag_vf3xt7isd4hx',1795066242005,'local',1,1795066242005,1795066242005);
INSERT INTO "orchestration_tasks" VALUES(3,'tk_nxdervlpnjqd','wf_a0zi3nsrehh5','third','d','pending',3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1795066242005,1795066242005);
CREATE TABLE orchestration_templates (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	description TEXT, 
	template TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	UNIQUE (name)
);
INSERT INTO "orchestration_templates" VALUES(1,'tmpl_rp0xqa69am1k','of it',NULL,'{"tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}',1,1795066242005,1795066242005);
CREATE TABLE orchestration_workflows (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	repository_id VARCHAR, 
	name TEXT NOT NULL, 
	source_type TEXT NOT NULL, 
	source_ref TEXT, 
	source_content TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	initial_plan TEXT, 
	plan_summary TEXT, 
	max_parallel_tasks INTEGER NOT NULL, 
	auto_create_workspaces BOOLEAN NOT NULL, 
	config TEXT, 
	principal TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	FOREIGN KEY(repository_id) REFERENCES orchestration_repositories (id)
);
INSERT INTO "orchestration_workflows" VALUES(1,'wf_a0zi3nsrehh5','rp_c5urifhtwv8b','Größe','prompt',NULL,'数据','in_progress','{"summary":"数据","approach":"a","tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}','数据',1,0,NULL,'local',1795066242005,1795066242005);
CREATE TABLE orchestration_workspaces (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	workflow_id VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	branch TEXT NOT NULL, 
	base_branch TEXT, 
	status VARCHAR NOT NULL, 
	merge_commit TEXT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES orchestration_workflows (id)
);
INSERT INTO "orchestration_workspaces" VALUES(1,'ws_st1uf136usob','wf_a0zi3nsrehh5','/projects/demo/w','b',NULL,'active',NULL,1795066242005,1795066242005);
CREATE INDEX deepwork_events_order ON deepwork_events (xid, seq);
CREATE INDEX deepwork_events_workflow ON deepwork_events (workflow_id, xid, seq);
CREATE INDEX deepwork_requests_at ON deepwork_requests (at);
CREATE INDEX deepwork_leases_holder ON deepwork_leases (holder);
CREATE INDEX deepwork_leases_expiry ON deepwork_leases (expires_at) WHERE holder IS NOT NULL;
CREATE INDEX deepwork_sessions_listing ON deepwork_sessions (machine, project, archived, updated_at);
CREATE INDEX deepwork_sessions_id ON deepwork_sessions (session_id);
CREATE INDEX ix_orchestration_messages_sender_id ON orchestration_messages (sender_id);
CREATE INDEX ix_orchestration_messages_thread_id ON orchestration_messages (thread_id);
CREATE INDEX orchestration_messages_inbox ON orchestration_messages (recipient_id, status, number);
CREATE INDEX ix_orchestration_workflows_repository_id ON orchestration_workflows (repository_id);
CREATE INDEX ix_orchestration_tasks_assigned_agent_id ON orchestration_tasks (assigned_agent_id);
CREATE INDEX orchestration_tasks_available ON orchestration_tasks (status, open_dependencies, sequence);
CREATE INDEX orchestration_tasks_in_order ON orchestration_tasks (workflow_id, sequence);
CREATE INDEX ix_orchestration_workspaces_path ON orchestration_workspaces (path);
CREATE INDEX ix_orchestration_workspaces_workflow_id ON orchestration_workspaces (workflow_id);
CREATE INDEX ix_orchestration_dependencies_depends_on_id ON orchestration_dependencies (depends_on_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('deepwork_events',14);
COMMIT;
