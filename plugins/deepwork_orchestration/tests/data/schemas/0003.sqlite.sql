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
INSERT INTO "alembic_version_orchestration" VALUES('0003');
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
INSERT INTO "deepwork_events" VALUES(1,0,'orchestration','workflow:created','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"wf_kjxrqqyesvnz","name":"Größe","status":"planning","created_at":1795123950621,"updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(2,0,'orchestration','workflow:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"wf_kjxrqqyesvnz","name":"Größe","status":"ready","created_at":1795123950621,"updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(3,0,'orchestration','agent:registered',NULL,1795123950621,'local','{"id":"ag_lh679i65q68f","name":"ann","runtime":"custom","role":"worker"}');
INSERT INTO "deepwork_events" VALUES(4,0,'orchestration','task:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_h4pll9g1wl66","name":"first","status":"pending","workflow_id":"wf_kjxrqqyesvnz","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_dm20xtxkxx07","updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(5,0,'orchestration','workspace:created','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"ws_dm20xtxkxx07","workflow_id":"wf_kjxrqqyesvnz","path":"/projects/demo/w","branch":"b","base_branch":null,"status":"active","merge_commit":null,"created_at":1795123950621,"updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(6,0,'orchestration','task:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_h4pll9g1wl66","name":"first","status":"pending","workflow_id":"wf_kjxrqqyesvnz","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_dm20xtxkxx07","updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(7,0,'orchestration','task:claimed','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_h4pll9g1wl66","name":"first","assigned_agent_id":"ag_lh679i65q68f","claimed_at":1795123950621,"claimed_by":"local","fence":1}');
INSERT INTO "deepwork_events" VALUES(8,0,'orchestration','workflow:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"wf_kjxrqqyesvnz","name":"Größe","status":"in_progress","created_at":1795123950621,"updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(9,0,'orchestration','task:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_h4pll9g1wl66","name":"first","status":"planning","workflow_id":"wf_kjxrqqyesvnz","sequence":1,"parallel_group":"g","assigned_agent_id":"ag_lh679i65q68f","workspace_id":"ws_dm20xtxkxx07","updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(10,0,'orchestration','task:updated','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_h4pll9g1wl66","name":"first","status":"completed","workflow_id":"wf_kjxrqqyesvnz","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_dm20xtxkxx07","updated_at":1795123950621,"agent_id":"ag_lh679i65q68f"}');
INSERT INTO "deepwork_events" VALUES(11,0,'orchestration','task:claimed','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"tk_s4a5a8mi5ne1","name":"second","assigned_agent_id":"ag_lh679i65q68f","claimed_at":1795123950621,"claimed_by":"local","fence":1}');
INSERT INTO "deepwork_events" VALUES(12,0,'orchestration','checkpoint:added','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"cp_qg3y38he914o","task_id":"tk_s4a5a8mi5ne1","sequence":1,"type":"progress","summary":"half"}');
INSERT INTO "deepwork_events" VALUES(13,0,'orchestration','message:sent','wf_kjxrqqyesvnz',1795123950621,'local','{"id":"msg_jp2pp9sklyd1","sender_id":"ag_lh679i65q68f","recipient_id":"ag_lh679i65q68f","message_type":"query","subject":null,"priority":"normal","status":"unread","workflow_id":"wf_kjxrqqyesvnz","task_id":null,"reply_to_id":null,"thread_id":"thr_hfqx9ay85whq","created_at":1795123950621,"read_at":null,"expires_at":null}');
INSERT INTO "deepwork_events" VALUES(14,0,'orchestration','template:created',NULL,1795123950621,'local','{"id":"tmpl_tjkjmge8j8ii","name":"of it","description":null}');
INSERT INTO "deepwork_events" VALUES(15,0,'orchestration','workflow:created','wf_20n35cfqmny1',1795123950621,'local','{"id":"wf_20n35cfqmny1","name":"paused","status":"planning","created_at":1795123950621,"updated_at":1795123950621}');
INSERT INTO "deepwork_events" VALUES(16,0,'orchestration','workflow:paused','wf_20n35cfqmny1',1795123950621,'local','{"id":"wf_20n35cfqmny1","name":"paused","status":"planning","created_at":1795123950621,"updated_at":1795123950621,"reason":"数据"}');
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
INSERT INTO "deepwork_leases" VALUES('orchestration/task/tk_h4pll9g1wl66',1,NULL,1795123950621);
INSERT INTO "deepwork_leases" VALUES('orchestration/task/tk_s4a5a8mi5ne1',1,'ag_lh679i65q68f',4948723950621);
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
INSERT INTO "deepwork_schemas" VALUES('deepwork',1,'1.0.0.dev0','1.0.0.dev0',1795123950490);
INSERT INTO "deepwork_schemas" VALUES('orchestration',3,'1.0.0.dev0','1.0.0.dev0',1795123950490);
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
INSERT INTO "orchestration_agents" VALUES(1,'ag_lh679i65q68f','ann','custom','worker','busy',NULL,'tk_s4a5a8mi5ne1',NULL,1795123950621,'{"b":[1,null],"a":"ü"}',NULL,'local',1795123950621,1795123950621);
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
INSERT INTO "orchestration_checkpoints" VALUES(1,'cp_qg3y38he914o','tk_s4a5a8mi5ne1',1,'progress','half','{"n":1}',NULL,1795123950621);
CREATE TABLE orchestration_dependencies (
	task_id VARCHAR NOT NULL, 
	depends_on_id VARCHAR NOT NULL, 
	type TEXT NOT NULL, 
	PRIMARY KEY (task_id, depends_on_id), 
	FOREIGN KEY(task_id) REFERENCES orchestration_tasks (id), 
	FOREIGN KEY(depends_on_id) REFERENCES orchestration_tasks (id)
);
INSERT INTO "orchestration_dependencies" VALUES('tk_s4a5a8mi5ne1','tk_h4pll9g1wl66','blocks');
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
INSERT INTO "orchestration_messages" VALUES(1,'msg_jp2pp9sklyd1','ag_lh679i65q68f','ag_lh679i65q68f','query',NULL,'{"text":"?"}','normal','unread','wf_kjxrqqyesvnz',NULL,NULL,'thr_hfqx9ay85whq',1795123950621,NULL,NULL);
CREATE TABLE orchestration_pauses (
	workflow_id TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	paused_at BIGINT NOT NULL, 
	PRIMARY KEY (workflow_id), 
	FOREIGN KEY(workflow_id) REFERENCES orchestration_workflows (id)
);
INSERT INTO "orchestration_pauses" VALUES('wf_20n35cfqmny1','数据',1795123950621);
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
INSERT INTO "orchestration_repositories" VALUES(1,'rp_i7j1s5lnmijk','/projects/demo',NULL,1795123950621,1795123950621);
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
	updated_at BIGINT NOT NULL, workflow_number BIGINT, 
	PRIMARY KEY (number), 
	UNIQUE (workflow_id, name), 
	UNIQUE (id), 
	FOREIGN KEY(workflow_id) REFERENCES orchestration_workflows (id)
);
INSERT INTO "orchestration_tasks" VALUES(1,'tk_h4pll9g1wl66','wf_kjxrqqyesvnz','first','Größe','completed',1,'g',NULL,NULL,NULL,'done',NULL,NULL,NULL,0,'ws_dm20xtxkxx07',NULL,NULL,NULL,NULL,1795123950621,1795123950621,1);
INSERT INTO "orchestration_tasks" VALUES(2,'tk_s4a5a8mi5ne1','wf_kjxrqqyesvnz','second','d','pending',2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,'ag_lh679i65q68f',1795123950621,'local',1,1795123950621,1795123950621,1);
INSERT INTO "orchestration_tasks" VALUES(3,'tk_e7f345t03v8c','wf_kjxrqqyesvnz','third','d','pending',3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1795123950621,1795123950621,1);
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
INSERT INTO "orchestration_templates" VALUES(1,'tmpl_tjkjmge8j8ii','of it',NULL,'{"tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}',1,1795123950621,1795123950621);
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
INSERT INTO "orchestration_workflows" VALUES(1,'wf_kjxrqqyesvnz','rp_i7j1s5lnmijk','Größe','prompt',NULL,'数据','in_progress','{"summary":"数据","approach":"a","tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}','数据',1,0,NULL,'local',1795123950621,1795123950621);
INSERT INTO "orchestration_workflows" VALUES(2,'wf_20n35cfqmny1','rp_i7j1s5lnmijk','paused','prompt',NULL,'p','planning',NULL,NULL,1,0,NULL,'local',1795123950621,1795123950621);
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
INSERT INTO "orchestration_workspaces" VALUES(1,'ws_dm20xtxkxx07','wf_kjxrqqyesvnz','/projects/demo/w','b',NULL,'active',NULL,1795123950621,1795123950621);
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
CREATE INDEX orchestration_tasks_in_order ON orchestration_tasks (workflow_id, sequence);
CREATE INDEX ix_orchestration_workspaces_path ON orchestration_workspaces (path);
CREATE INDEX ix_orchestration_workspaces_workflow_id ON orchestration_workspaces (workflow_id);
CREATE INDEX ix_orchestration_dependencies_depends_on_id ON orchestration_dependencies (depends_on_id);
CREATE INDEX orchestration_tasks_available ON orchestration_tasks (status, open_dependencies, sequence, workflow_number, name);
CREATE INDEX orchestration_workflows_in_order ON orchestration_workflows (created_at, number);
CREATE INDEX orchestration_workflows_by_status ON orchestration_workflows (status, created_at, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('deepwork_events',16);
COMMIT;
