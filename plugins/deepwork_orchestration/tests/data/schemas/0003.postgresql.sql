CREATE TABLE public.alembic_version_deepwork (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.alembic_version_orchestration (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.deepwork_events (
    seq bigint NOT NULL,
    xid bigint NOT NULL,
    source character varying NOT NULL COLLATE pg_catalog."C",
    event character varying NOT NULL,
    workflow_id character varying COLLATE pg_catalog."C",
    at bigint NOT NULL,
    principal character varying,
    data json NOT NULL
);
CREATE SEQUENCE public.deepwork_events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.deepwork_events_seq_seq OWNED BY public.deepwork_events.seq;
CREATE TABLE public.deepwork_feed (
    "only" boolean NOT NULL,
    "offset" bigint NOT NULL
);
CREATE TABLE public.deepwork_leases (
    item character varying NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    holder character varying COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE public.deepwork_requests (
    principal character varying NOT NULL COLLATE pg_catalog."C",
    tool character varying NOT NULL COLLATE pg_catalog."C",
    request_id character varying NOT NULL COLLATE pg_catalog."C",
    arguments character varying NOT NULL,
    result json,
    at bigint NOT NULL
);
CREATE TABLE public.deepwork_schemas (
    name character varying NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    oldest_release character varying NOT NULL,
    migrated_by character varying NOT NULL,
    migrated_at bigint NOT NULL
);
CREATE TABLE public.deepwork_sessions (
    machine character varying NOT NULL COLLATE pg_catalog."C",
    project character varying NOT NULL COLLATE pg_catalog."C",
    session_id character varying NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    schema_version integer NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    updated_at character varying NOT NULL COLLATE pg_catalog."C",
    history_length integer NOT NULL,
    archived boolean NOT NULL,
    damaged boolean NOT NULL,
    summary text NOT NULL,
    document text NOT NULL
);
CREATE TABLE public.orchestration_agents (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    runtime text NOT NULL,
    role text NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    capabilities json,
    current_task_id character varying COLLATE pg_catalog."C",
    workspace_path text,
    last_heartbeat bigint NOT NULL,
    metadata json,
    lost_task_ids json,
    principal text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_agents_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_agents_number_seq OWNED BY public.orchestration_agents.number;
CREATE TABLE public.orchestration_checkpoints (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    sequence bigint NOT NULL,
    checkpoint_type text NOT NULL,
    summary text NOT NULL,
    detail json,
    files_changed json,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_checkpoints_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_checkpoints_number_seq OWNED BY public.orchestration_checkpoints.number;
CREATE TABLE public.orchestration_dependencies (
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    depends_on_id character varying NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL
);
CREATE TABLE public.orchestration_messages (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    sender_id character varying COLLATE pg_catalog."C",
    recipient_id character varying NOT NULL COLLATE pg_catalog."C",
    message_type text NOT NULL,
    subject text,
    body json NOT NULL,
    priority text NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying COLLATE pg_catalog."C",
    task_id character varying COLLATE pg_catalog."C",
    reply_to_id character varying COLLATE pg_catalog."C",
    thread_id character varying NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    read_at bigint,
    expires_at bigint
);
CREATE SEQUENCE public.orchestration_messages_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_messages_number_seq OWNED BY public.orchestration_messages.number;
CREATE TABLE public.orchestration_pauses (
    workflow_id text NOT NULL,
    reason text NOT NULL,
    paused_at bigint NOT NULL
);
CREATE TABLE public.orchestration_repositories (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    path character varying NOT NULL COLLATE pg_catalog."C",
    name text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_repositories_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_repositories_number_seq OWNED BY public.orchestration_repositories.number;
CREATE TABLE public.orchestration_tasks (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    name character varying NOT NULL COLLATE pg_catalog."C",
    description text,
    status character varying NOT NULL COLLATE pg_catalog."C",
    sequence bigint NOT NULL,
    parallel_group character varying COLLATE pg_catalog."C",
    plan json,
    plan_summary text,
    context json,
    outcome text,
    outcome_detail json,
    error text,
    required_capabilities json,
    open_dependencies integer NOT NULL,
    workspace_id character varying COLLATE pg_catalog."C",
    assigned_agent_id character varying COLLATE pg_catalog."C",
    claimed_at bigint,
    claimed_by text,
    fence bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    workflow_number bigint
);
CREATE SEQUENCE public.orchestration_tasks_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_tasks_number_seq OWNED BY public.orchestration_tasks.number;
CREATE TABLE public.orchestration_templates (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    name character varying NOT NULL COLLATE pg_catalog."C",
    description text,
    template json NOT NULL,
    version integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_templates_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_templates_number_seq OWNED BY public.orchestration_templates.number;
CREATE TABLE public.orchestration_workflows (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    repository_id character varying COLLATE pg_catalog."C",
    name text NOT NULL,
    source_type text NOT NULL,
    source_ref text,
    source_content text NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    initial_plan json,
    plan_summary text,
    max_parallel_tasks integer NOT NULL,
    auto_create_workspaces boolean NOT NULL,
    config json,
    principal text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_workflows_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_workflows_number_seq OWNED BY public.orchestration_workflows.number;
CREATE TABLE public.orchestration_workspaces (
    number bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    path character varying NOT NULL COLLATE pg_catalog."C",
    branch text NOT NULL,
    base_branch text,
    status character varying NOT NULL COLLATE pg_catalog."C",
    merge_commit text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.orchestration_workspaces_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.orchestration_workspaces_number_seq OWNED BY public.orchestration_workspaces.number;
ALTER TABLE ONLY public.deepwork_events ALTER COLUMN seq SET DEFAULT nextval('public.deepwork_events_seq_seq'::regclass);
ALTER TABLE ONLY public.orchestration_agents ALTER COLUMN number SET DEFAULT nextval('public.orchestration_agents_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_checkpoints ALTER COLUMN number SET DEFAULT nextval('public.orchestration_checkpoints_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_messages ALTER COLUMN number SET DEFAULT nextval('public.orchestration_messages_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_repositories ALTER COLUMN number SET DEFAULT nextval('public.orchestration_repositories_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_tasks ALTER COLUMN number SET DEFAULT nextval('public.orchestration_tasks_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_templates ALTER COLUMN number SET DEFAULT nextval('public.orchestration_templates_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_workflows ALTER COLUMN number SET DEFAULT nextval('public.orchestration_workflows_number_seq'::regclass);
ALTER TABLE ONLY public.orchestration_workspaces ALTER COLUMN number SET DEFAULT nextval('public.orchestration_workspaces_number_seq'::regclass);
INSERT INTO public.alembic_version_deepwork VALUES ('0001');
INSERT INTO public.alembic_version_orchestration VALUES ('0003');
INSERT INTO public.deepwork_events VALUES (1, 726, 'orchestration', 'workflow:created', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"wf_fm43wskeqz95","name":"Größe","status":"planning","created_at":1795123958193,"updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (2, 726, 'orchestration', 'workflow:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"wf_fm43wskeqz95","name":"Größe","status":"ready","created_at":1795123958193,"updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (3, 726, 'orchestration', 'agent:registered', NULL, 1795123958193, 'local', '{"id":"ag_im2wga8m840r","name":"ann","runtime":"custom","role":"worker"}');
INSERT INTO public.deepwork_events VALUES (4, 726, 'orchestration', 'task:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_537x83wweehp","name":"first","status":"pending","workflow_id":"wf_fm43wskeqz95","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_tt1rpjjrwvkp","updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (5, 726, 'orchestration', 'workspace:created', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"ws_tt1rpjjrwvkp","workflow_id":"wf_fm43wskeqz95","path":"/projects/demo/w","branch":"b","base_branch":null,"status":"active","merge_commit":null,"created_at":1795123958193,"updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (6, 726, 'orchestration', 'task:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_537x83wweehp","name":"first","status":"pending","workflow_id":"wf_fm43wskeqz95","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_tt1rpjjrwvkp","updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (7, 726, 'orchestration', 'task:claimed', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_537x83wweehp","name":"first","assigned_agent_id":"ag_im2wga8m840r","claimed_at":1795123958193,"claimed_by":"local","fence":1}');
INSERT INTO public.deepwork_events VALUES (8, 726, 'orchestration', 'workflow:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"wf_fm43wskeqz95","name":"Größe","status":"in_progress","created_at":1795123958193,"updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (9, 726, 'orchestration', 'task:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_537x83wweehp","name":"first","status":"planning","workflow_id":"wf_fm43wskeqz95","sequence":1,"parallel_group":"g","assigned_agent_id":"ag_im2wga8m840r","workspace_id":"ws_tt1rpjjrwvkp","updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (10, 726, 'orchestration', 'task:updated', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_537x83wweehp","name":"first","status":"completed","workflow_id":"wf_fm43wskeqz95","sequence":1,"parallel_group":"g","assigned_agent_id":null,"workspace_id":"ws_tt1rpjjrwvkp","updated_at":1795123958193,"agent_id":"ag_im2wga8m840r"}');
INSERT INTO public.deepwork_events VALUES (11, 726, 'orchestration', 'task:claimed', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"tk_dfv36sc6cl0l","name":"second","assigned_agent_id":"ag_im2wga8m840r","claimed_at":1795123958193,"claimed_by":"local","fence":1}');
INSERT INTO public.deepwork_events VALUES (12, 726, 'orchestration', 'checkpoint:added', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"cp_ewtup15pv4xm","task_id":"tk_dfv36sc6cl0l","sequence":1,"type":"progress","summary":"half"}');
INSERT INTO public.deepwork_events VALUES (13, 726, 'orchestration', 'message:sent', 'wf_fm43wskeqz95', 1795123958193, 'local', '{"id":"msg_tp9q11kogoe9","sender_id":"ag_im2wga8m840r","recipient_id":"ag_im2wga8m840r","message_type":"query","subject":null,"priority":"normal","status":"unread","workflow_id":"wf_fm43wskeqz95","task_id":null,"reply_to_id":null,"thread_id":"thr_8kgyqyzxsgn2","created_at":1795123958193,"read_at":null,"expires_at":null}');
INSERT INTO public.deepwork_events VALUES (14, 726, 'orchestration', 'template:created', NULL, 1795123958193, 'local', '{"id":"tmpl_9zvmx47ys9to","name":"of it","description":null}');
INSERT INTO public.deepwork_events VALUES (15, 726, 'orchestration', 'workflow:created', 'wf_vb4imx8fklsq', 1795123958193, 'local', '{"id":"wf_vb4imx8fklsq","name":"paused","status":"planning","created_at":1795123958193,"updated_at":1795123958193}');
INSERT INTO public.deepwork_events VALUES (16, 726, 'orchestration', 'workflow:paused', 'wf_vb4imx8fklsq', 1795123958193, 'local', '{"id":"wf_vb4imx8fklsq","name":"paused","status":"planning","created_at":1795123958193,"updated_at":1795123958193,"reason":"数据"}');
INSERT INTO public.deepwork_feed VALUES (true, 0);
INSERT INTO public.deepwork_leases VALUES ('orchestration/task/tk_537x83wweehp', 1, NULL, 1795123958193);
INSERT INTO public.deepwork_leases VALUES ('orchestration/task/tk_dfv36sc6cl0l', 1, 'ag_im2wga8m840r', 4948723958193);
INSERT INTO public.deepwork_schemas VALUES ('deepwork', 1, '1.0.0.dev0', '1.0.0.dev0', 1795123957663);
INSERT INTO public.deepwork_schemas VALUES ('orchestration', 3, '1.0.0.dev0', '1.0.0.dev0', 1795123957663);
INSERT INTO public.orchestration_agents VALUES (1, 'ag_im2wga8m840r', 'ann', 'custom', 'worker', 'busy', NULL, 'tk_dfv36sc6cl0l', NULL, 1795123958193, '{"b":[1,null],"a":"ü"}', NULL, 'local', 1795123958193, 1795123958193);
INSERT INTO public.orchestration_checkpoints VALUES (1, 'cp_ewtup15pv4xm', 'tk_dfv36sc6cl0l', 1, 'progress', 'half', '{"n":1}', NULL, 1795123958193);
INSERT INTO public.orchestration_dependencies VALUES ('tk_dfv36sc6cl0l', 'tk_537x83wweehp', 'blocks');
INSERT INTO public.orchestration_messages VALUES (1, 'msg_tp9q11kogoe9', 'ag_im2wga8m840r', 'ag_im2wga8m840r', 'query', NULL, '{"text":"?"}', 'normal', 'unread', 'wf_fm43wskeqz95', NULL, NULL, 'thr_8kgyqyzxsgn2', 1795123958193, NULL, NULL);
INSERT INTO public.orchestration_pauses VALUES ('wf_vb4imx8fklsq', '数据', 1795123958193);
INSERT INTO public.orchestration_repositories VALUES (1, 'rp_qlidtekujh49', '/projects/demo', NULL, 1795123958193, 1795123958193);
INSERT INTO public.orchestration_tasks VALUES (3, 'tk_386fqy1hqi1w', 'wf_fm43wskeqz95', 'third', 'd', 'pending', 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 1795123958193, 1795123958193, 1);
INSERT INTO public.orchestration_tasks VALUES (1, 'tk_537x83wweehp', 'wf_fm43wskeqz95', 'first', 'Größe', 'completed', 1, 'g', NULL, NULL, NULL, 'done', NULL, NULL, NULL, 0, 'ws_tt1rpjjrwvkp', NULL, NULL, NULL, NULL, 1795123958193, 1795123958193, 1);
INSERT INTO public.orchestration_tasks VALUES (2, 'tk_dfv36sc6cl0l', 'wf_fm43wskeqz95', 'second', 'd', 'pending', 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 'ag_im2wga8m840r', 1795123958193, 'local', 1, 1795123958193, 1795123958193, 1);
INSERT INTO public.orchestration_templates VALUES (1, 'tmpl_9zvmx47ys9to', 'of it', NULL, '{"tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}', 1, 1795123958193, 1795123958193);
INSERT INTO public.orchestration_workflows VALUES (1, 'wf_fm43wskeqz95', 'rp_qlidtekujh49', 'Größe', 'prompt', NULL, '数据', 'in_progress', '{"summary":"数据","approach":"a","tasks":[{"name":"first","description":"Größe","sequence":1,"parallel_group":"g"},{"name":"second","description":"d","sequence":2,"depends_on":["first"]},{"name":"third","description":"d","sequence":3}]}', '数据', 1, false, NULL, 'local', 1795123958193, 1795123958193);
INSERT INTO public.orchestration_workflows VALUES (2, 'wf_vb4imx8fklsq', 'rp_qlidtekujh49', 'paused', 'prompt', NULL, 'p', 'planning', NULL, NULL, 1, false, NULL, 'local', 1795123958193, 1795123958193);
INSERT INTO public.orchestration_workspaces VALUES (1, 'ws_tt1rpjjrwvkp', 'wf_fm43wskeqz95', '/projects/demo/w', 'b', NULL, 'active', NULL, 1795123958193, 1795123958193);
SELECT pg_catalog.setval('public.deepwork_events_seq_seq', 16, true);
SELECT pg_catalog.setval('public.orchestration_agents_number_seq', 1, true);
SELECT pg_catalog.setval('public.orchestration_checkpoints_number_seq', 1, true);
SELECT pg_catalog.setval('public.orchestration_messages_number_seq', 1, true);
SELECT pg_catalog.setval('public.orchestration_repositories_number_seq', 1, true);
SELECT pg_catalog.setval('public.orchestration_tasks_number_seq', 3, true);
SELECT pg_catalog.setval('public.orchestration_templates_number_seq', 1, true);
SELECT pg_catalog.setval('public.orchestration_workflows_number_seq', 2, true);
SELECT pg_catalog.setval('public.orchestration_workspaces_number_seq', 1, true);
ALTER TABLE ONLY public.alembic_version_deepwork
    ADD CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.alembic_version_orchestration
    ADD CONSTRAINT alembic_version_orchestration_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.deepwork_events
    ADD CONSTRAINT deepwork_events_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.deepwork_feed
    ADD CONSTRAINT deepwork_feed_pkey PRIMARY KEY ("only");
ALTER TABLE ONLY public.deepwork_leases
    ADD CONSTRAINT deepwork_leases_pkey PRIMARY KEY (item);
ALTER TABLE ONLY public.deepwork_requests
    ADD CONSTRAINT deepwork_requests_pkey PRIMARY KEY (principal, tool, request_id);
ALTER TABLE ONLY public.deepwork_schemas
    ADD CONSTRAINT deepwork_schemas_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.deepwork_sessions
    ADD CONSTRAINT deepwork_sessions_pkey PRIMARY KEY (machine, project, session_id);
ALTER TABLE ONLY public.orchestration_agents
    ADD CONSTRAINT orchestration_agents_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_agents
    ADD CONSTRAINT orchestration_agents_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_checkpoints
    ADD CONSTRAINT orchestration_checkpoints_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_checkpoints
    ADD CONSTRAINT orchestration_checkpoints_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_checkpoints
    ADD CONSTRAINT orchestration_checkpoints_task_id_sequence_key UNIQUE (task_id, sequence);
ALTER TABLE ONLY public.orchestration_dependencies
    ADD CONSTRAINT orchestration_dependencies_pkey PRIMARY KEY (task_id, depends_on_id);
ALTER TABLE ONLY public.orchestration_messages
    ADD CONSTRAINT orchestration_messages_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_messages
    ADD CONSTRAINT orchestration_messages_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_pauses
    ADD CONSTRAINT orchestration_pauses_pkey PRIMARY KEY (workflow_id);
ALTER TABLE ONLY public.orchestration_repositories
    ADD CONSTRAINT orchestration_repositories_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_repositories
    ADD CONSTRAINT orchestration_repositories_path_key UNIQUE (path);
ALTER TABLE ONLY public.orchestration_repositories
    ADD CONSTRAINT orchestration_repositories_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_tasks
    ADD CONSTRAINT orchestration_tasks_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_tasks
    ADD CONSTRAINT orchestration_tasks_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_tasks
    ADD CONSTRAINT orchestration_tasks_workflow_id_name_key UNIQUE (workflow_id, name);
ALTER TABLE ONLY public.orchestration_templates
    ADD CONSTRAINT orchestration_templates_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_templates
    ADD CONSTRAINT orchestration_templates_name_key UNIQUE (name);
ALTER TABLE ONLY public.orchestration_templates
    ADD CONSTRAINT orchestration_templates_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_workflows
    ADD CONSTRAINT orchestration_workflows_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_workflows
    ADD CONSTRAINT orchestration_workflows_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.orchestration_workspaces
    ADD CONSTRAINT orchestration_workspaces_id_key UNIQUE (id);
ALTER TABLE ONLY public.orchestration_workspaces
    ADD CONSTRAINT orchestration_workspaces_pkey PRIMARY KEY (number);
CREATE INDEX deepwork_events_order ON public.deepwork_events USING btree (xid, seq);
CREATE INDEX deepwork_events_workflow ON public.deepwork_events USING btree (workflow_id, xid, seq);
CREATE INDEX deepwork_leases_expiry ON public.deepwork_leases USING btree (expires_at) WHERE (holder IS NOT NULL);
CREATE INDEX deepwork_leases_holder ON public.deepwork_leases USING btree (holder);
CREATE INDEX deepwork_requests_at ON public.deepwork_requests USING btree (at);
CREATE INDEX deepwork_sessions_id ON public.deepwork_sessions USING btree (session_id);
CREATE INDEX deepwork_sessions_listing ON public.deepwork_sessions USING btree (machine, project, archived, updated_at);
CREATE INDEX ix_orchestration_dependencies_depends_on_id ON public.orchestration_dependencies USING btree (depends_on_id);
CREATE INDEX ix_orchestration_messages_sender_id ON public.orchestration_messages USING btree (sender_id);
CREATE INDEX ix_orchestration_messages_thread_id ON public.orchestration_messages USING btree (thread_id);
CREATE INDEX ix_orchestration_tasks_assigned_agent_id ON public.orchestration_tasks USING btree (assigned_agent_id);
CREATE INDEX ix_orchestration_workflows_repository_id ON public.orchestration_workflows USING btree (repository_id);
CREATE INDEX ix_orchestration_workspaces_path ON public.orchestration_workspaces USING btree (path);
CREATE INDEX ix_orchestration_workspaces_workflow_id ON public.orchestration_workspaces USING btree (workflow_id);
CREATE INDEX orchestration_messages_inbox ON public.orchestration_messages USING btree (recipient_id, status, number);
CREATE INDEX orchestration_tasks_available ON public.orchestration_tasks USING btree (status, open_dependencies, sequence, workflow_number, name);
CREATE INDEX orchestration_tasks_in_order ON public.orchestration_tasks USING btree (workflow_id, sequence);
CREATE INDEX orchestration_workflows_by_status ON public.orchestration_workflows USING btree (status, created_at, number);
CREATE INDEX orchestration_workflows_in_order ON public.orchestration_workflows USING btree (created_at, number);
ALTER TABLE ONLY public.orchestration_checkpoints
    ADD CONSTRAINT orchestration_checkpoints_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.orchestration_tasks(id);
ALTER TABLE ONLY public.orchestration_dependencies
    ADD CONSTRAINT orchestration_dependencies_depends_on_id_fkey FOREIGN KEY (depends_on_id) REFERENCES public.orchestration_tasks(id);
ALTER TABLE ONLY public.orchestration_dependencies
    ADD CONSTRAINT orchestration_dependencies_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.orchestration_tasks(id);
ALTER TABLE ONLY public.orchestration_messages
    ADD CONSTRAINT orchestration_messages_recipient_id_fkey FOREIGN KEY (recipient_id) REFERENCES public.orchestration_agents(id);
ALTER TABLE ONLY public.orchestration_messages
    ADD CONSTRAINT orchestration_messages_sender_id_fkey FOREIGN KEY (sender_id) REFERENCES public.orchestration_agents(id);
ALTER TABLE ONLY public.orchestration_pauses
    ADD CONSTRAINT orchestration_pauses_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.orchestration_workflows(id);
ALTER TABLE ONLY public.orchestration_tasks
    ADD CONSTRAINT orchestration_tasks_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.orchestration_workflows(id);
ALTER TABLE ONLY public.orchestration_workflows
    ADD CONSTRAINT orchestration_workflows_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.orchestration_repositories(id);
ALTER TABLE ONLY public.orchestration_workspaces
    ADD CONSTRAINT orchestration_workspaces_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.orchestration_workflows(id);
