CREATE TABLE public.alembic_version_deepwork (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.alembic_version_tracking (
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
CREATE TABLE public.tracking_decisions (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    category character varying NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL,
    options_considered json NOT NULL,
    chosen text NOT NULL,
    reasoning text NOT NULL,
    trade_offs text,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.tracking_decisions_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_decisions_position_seq OWNED BY public.tracking_decisions."position";
CREATE TABLE public.tracking_issues (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    type character varying NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    resolution text NOT NULL,
    requires_human_review boolean NOT NULL,
    created_at bigint NOT NULL,
    resolved_at bigint,
    resolved_by text,
    resolved_note text
);
CREATE SEQUENCE public.tracking_issues_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_issues_position_seq OWNED BY public.tracking_issues."position";
CREATE TABLE public.tracking_milestones (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    message text NOT NULL,
    progress json,
    metadata json,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.tracking_milestones_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_milestones_position_seq OWNED BY public.tracking_milestones."position";
CREATE TABLE public.tracking_phases (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    name text NOT NULL,
    description text,
    is_parallel boolean NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    summary text,
    started_at bigint NOT NULL,
    completed_at bigint
);
CREATE SEQUENCE public.tracking_phases_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_phases_position_seq OWNED BY public.tracking_phases."position";
CREATE TABLE public.tracking_snapshots (
    task_id character varying NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL
);
CREATE TABLE public.tracking_tasks (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    workflow_id character varying NOT NULL COLLATE pg_catalog."C",
    phase_id character varying NOT NULL COLLATE pg_catalog."C",
    parent_task_id character varying COLLATE pg_catalog."C",
    caller_type character varying NOT NULL COLLATE pg_catalog."C",
    agent_name text,
    name text NOT NULL,
    goal text NOT NULL,
    areas json NOT NULL,
    status character varying NOT NULL COLLATE pg_catalog."C",
    snapshot_id text NOT NULL,
    snapshot_type character varying NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    completed_at bigint,
    summary text,
    achievements json,
    limitations json,
    next_steps json,
    manual_review_needed boolean NOT NULL,
    packages_added json,
    tests_status character varying COLLATE pg_catalog."C",
    files_changed json,
    verification json
);
CREATE SEQUENCE public.tracking_tasks_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_tasks_position_seq OWNED BY public.tracking_tasks."position";
CREATE TABLE public.tracking_workflows (
    "position" bigint NOT NULL,
    id character varying NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    objective text NOT NULL,
    profile character varying NOT NULL COLLATE pg_catalog."C",
    status character varying NOT NULL COLLATE pg_catalog."C",
    current_phase integer NOT NULL,
    total_phases integer NOT NULL,
    scope text,
    constraints text,
    created_at bigint NOT NULL,
    completed_at bigint,
    ended_as character varying COLLATE pg_catalog."C",
    summary text,
    achievements json,
    limitations json,
    metrics json
);
CREATE SEQUENCE public.tracking_workflows_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tracking_workflows_position_seq OWNED BY public.tracking_workflows."position";
ALTER TABLE ONLY public.deepwork_events ALTER COLUMN seq SET DEFAULT nextval('public.deepwork_events_seq_seq'::regclass);
ALTER TABLE ONLY public.tracking_decisions ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_decisions_position_seq'::regclass);
ALTER TABLE ONLY public.tracking_issues ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_issues_position_seq'::regclass);
ALTER TABLE ONLY public.tracking_milestones ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_milestones_position_seq'::regclass);
ALTER TABLE ONLY public.tracking_phases ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_phases_position_seq'::regclass);
ALTER TABLE ONLY public.tracking_tasks ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_tasks_position_seq'::regclass);
ALTER TABLE ONLY public.tracking_workflows ALTER COLUMN "position" SET DEFAULT nextval('public.tracking_workflows_position_seq'::regclass);
INSERT INTO public.alembic_version_deepwork VALUES ('0001');
INSERT INTO public.alembic_version_tracking VALUES ('0001');
INSERT INTO public.deepwork_events VALUES (1, 726, 'tracking', 'workflow:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","workflow_name":"Größe","workflow_status":"IN_PROGRESS","current_phase":0,"total_phases":2}');
INSERT INTO public.deepwork_events VALUES (2, 726, 'tracking', 'phase:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","phase_number":1,"phase_name":"p","phase_id":"ph_e1s9egkv87be","status":"IN_PROGRESS","is_parallel":true,"tasks":{"total":0,"completed":0,"failed":0,"in_progress":0},"duration_seconds":0,"started_at":"2026-11-19T02:53:37.457Z","completed_at":null,"description":"d"}');
INSERT INTO public.deepwork_events VALUES (3, 726, 'tracking', 'workflow:updated', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","workflow_name":"Größe","workflow_status":"IN_PROGRESS","current_phase":1,"total_phases":2}');
INSERT INTO public.deepwork_events VALUES (4, 726, 'tracking', 'task:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"tt_lwwdstwygaw6","phase_id":"ph_e1s9egkv87be","name":"ended","goal":"g","status":"IN_PROGRESS","caller_type":"SUBAGENT","agent_name":"ann","summary":null,"duration_seconds":null,"started_at":"2026-11-19T02:53:37.457Z","completed_at":null,"manual_review_needed":false,"areas":["src"]}');
INSERT INTO public.deepwork_events VALUES (5, 726, 'tracking', 'task:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"tt_fn97iobg6qyg","phase_id":"ph_e1s9egkv87be","name":"running","goal":"g","status":"IN_PROGRESS","caller_type":"SUBAGENT","agent_name":"ann","summary":null,"duration_seconds":null,"started_at":"2026-11-19T02:53:37.457Z","completed_at":null,"manual_review_needed":false,"areas":["src"]}');
INSERT INTO public.deepwork_events VALUES (6, 726, 'tracking', 'task:updated', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"tt_lwwdstwygaw6","phase_id":"ph_e1s9egkv87be","name":"ended","goal":"g","status":"SUCCESS","caller_type":"SUBAGENT","agent_name":"ann","summary":"s","duration_seconds":0,"started_at":"2026-11-19T02:53:37.457Z","completed_at":"2026-11-19T02:53:37.457Z","manual_review_needed":false,"areas":["src"],"achievements":["a"],"tests_status":"PASSED"}');
INSERT INTO public.deepwork_events VALUES (7, 726, 'tracking', 'decision:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"dec_k7xkzb3t65lh","task_id":"tt_lwwdstwygaw6","task_name":"ended","agent_name":"ann","category":"OTHER","question":"q","options_considered":["c"],"chosen":"c","reasoning":"r","trade_offs":null,"created_at":"2026-11-19T02:53:37.457Z"}');
INSERT INTO public.deepwork_events VALUES (8, 726, 'tracking', 'issue:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"iss_nce8whm4ybas","task_id":"tt_lwwdstwygaw6","task_name":"ended","agent_name":"ann","type":"BUG","description":"d","resolution":"r","created_at":"2026-11-19T02:53:37.457Z"}');
INSERT INTO public.deepwork_events VALUES (9, 726, 'tracking', 'milestone:created', 'tw_5ghxjq97i31w', 1795056817457, 'local', '{"workflow_id":"tw_5ghxjq97i31w","id":"mil_vuhgrlxb8f8o","task_id":"tt_lwwdstwygaw6","task_name":"ended","agent_name":"ann","message":"m","progress":12.5,"metadata":{"b":[1,null],"a":"ü"},"created_at":"2026-11-19T02:53:37.457Z"}');
INSERT INTO public.deepwork_feed VALUES (true, 0);
INSERT INTO public.deepwork_schemas VALUES ('deepwork', 1, '1.0.0.dev0', '1.0.0.dev0', 1795056817048);
INSERT INTO public.deepwork_schemas VALUES ('tracking', 1, '1.0.0.dev0', '1.0.0.dev0', 1795056817048);
INSERT INTO public.tracking_decisions VALUES (1, 'dec_k7xkzb3t65lh', 'tw_5ghxjq97i31w', 'tt_lwwdstwygaw6', 'OTHER', 'q', '["c"]', 'c', 'r', NULL, 1795056817457);
INSERT INTO public.tracking_issues VALUES (1, 'iss_nce8whm4ybas', 'tw_5ghxjq97i31w', 'tt_lwwdstwygaw6', 'BUG', 'd', 'r', true, 1795056817457, NULL, NULL, NULL);
INSERT INTO public.tracking_milestones VALUES (1, 'mil_vuhgrlxb8f8o', 'tw_5ghxjq97i31w', 'tt_lwwdstwygaw6', 'm', '12.5', '{"b":[1,null],"a":"ü"}', 1795056817457);
INSERT INTO public.tracking_phases VALUES (1, 'ph_e1s9egkv87be', 'tw_5ghxjq97i31w', 1, 'p', 'd', true, 'IN_PROGRESS', NULL, 1795056817457, NULL);
INSERT INTO public.tracking_snapshots VALUES ('tt_fn97iobg6qyg', '{"type":"git","id":"0000000000000000000000000000000000000000","machine":"laptop","toplevel":"/projects/demo","states":{"a":null},"last":null,"warnings":[]}');
INSERT INTO public.tracking_tasks VALUES (2, 'tt_fn97iobg6qyg', 'tw_5ghxjq97i31w', 'ph_e1s9egkv87be', NULL, 'SUBAGENT', 'ann', 'running', 'g', '["src"]', 'IN_PROGRESS', '0000000000000000000000000000000000000000', 'git', 1795056817457, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL);
INSERT INTO public.tracking_tasks VALUES (1, 'tt_lwwdstwygaw6', 'tw_5ghxjq97i31w', 'ph_e1s9egkv87be', NULL, 'SUBAGENT', 'ann', 'ended', 'g', '["src"]', 'SUCCESS', '0000000000000000000000000000000000000000', 'git', 1795056817457, 1795056817457, 's', '["a"]', NULL, NULL, false, NULL, 'PASSED', '{"added":["src/é"],"modified":["b"],"deleted":[]}', '{"scope_match":false,"unexpected_files":["b"],"changed_before_start":[],"warnings":["1 file(s) changed outside of the areas src"]}');
INSERT INTO public.tracking_workflows VALUES (1, 'tw_5ghxjq97i31w', 'Größe', '数据', 'SIMPLE', 'IN_PROGRESS', 1, 2, NULL, 'c', 1795056817457, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT pg_catalog.setval('public.deepwork_events_seq_seq', 9, true);
SELECT pg_catalog.setval('public.tracking_decisions_position_seq', 1, true);
SELECT pg_catalog.setval('public.tracking_issues_position_seq', 1, true);
SELECT pg_catalog.setval('public.tracking_milestones_position_seq', 1, true);
SELECT pg_catalog.setval('public.tracking_phases_position_seq', 1, true);
SELECT pg_catalog.setval('public.tracking_tasks_position_seq', 2, true);
SELECT pg_catalog.setval('public.tracking_workflows_position_seq', 1, true);
ALTER TABLE ONLY public.alembic_version_deepwork
    ADD CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.alembic_version_tracking
    ADD CONSTRAINT alembic_version_tracking_pkc PRIMARY KEY (version_num);
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
ALTER TABLE ONLY public.tracking_decisions
    ADD CONSTRAINT tracking_decisions_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_decisions
    ADD CONSTRAINT tracking_decisions_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.tracking_issues
    ADD CONSTRAINT tracking_issues_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_issues
    ADD CONSTRAINT tracking_issues_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.tracking_milestones
    ADD CONSTRAINT tracking_milestones_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_milestones
    ADD CONSTRAINT tracking_milestones_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.tracking_phases
    ADD CONSTRAINT tracking_phases_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_phases
    ADD CONSTRAINT tracking_phases_number UNIQUE (workflow_id, number);
ALTER TABLE ONLY public.tracking_phases
    ADD CONSTRAINT tracking_phases_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.tracking_snapshots
    ADD CONSTRAINT tracking_snapshots_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY public.tracking_tasks
    ADD CONSTRAINT tracking_tasks_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_tasks
    ADD CONSTRAINT tracking_tasks_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.tracking_workflows
    ADD CONSTRAINT tracking_workflows_id_key UNIQUE (id);
ALTER TABLE ONLY public.tracking_workflows
    ADD CONSTRAINT tracking_workflows_pkey PRIMARY KEY ("position");
CREATE INDEX deepwork_events_order ON public.deepwork_events USING btree (xid, seq);
CREATE INDEX deepwork_events_workflow ON public.deepwork_events USING btree (workflow_id, xid, seq);
CREATE INDEX deepwork_leases_holder ON public.deepwork_leases USING btree (holder);
CREATE INDEX deepwork_requests_at ON public.deepwork_requests USING btree (at);
CREATE INDEX deepwork_sessions_id ON public.deepwork_sessions USING btree (session_id);
CREATE INDEX deepwork_sessions_listing ON public.deepwork_sessions USING btree (machine, project, archived, updated_at);
CREATE INDEX tracking_decisions_workflow ON public.tracking_decisions USING btree (workflow_id, created_at, "position");
CREATE INDEX tracking_issues_blockers ON public.tracking_issues USING btree (requires_human_review, resolved_at);
CREATE INDEX tracking_issues_workflow ON public.tracking_issues USING btree (workflow_id, created_at, "position");
CREATE INDEX tracking_milestones_workflow ON public.tracking_milestones USING btree (workflow_id, created_at, "position");
CREATE INDEX tracking_tasks_parent ON public.tracking_tasks USING btree (parent_task_id);
CREATE INDEX tracking_tasks_phase ON public.tracking_tasks USING btree (phase_id);
CREATE INDEX tracking_tasks_workflow ON public.tracking_tasks USING btree (workflow_id, started_at, "position");
CREATE INDEX tracking_workflows_status ON public.tracking_workflows USING btree (status);
ALTER TABLE ONLY public.tracking_decisions
    ADD CONSTRAINT tracking_decisions_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tracking_tasks(id);
ALTER TABLE ONLY public.tracking_decisions
    ADD CONSTRAINT tracking_decisions_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.tracking_workflows(id);
ALTER TABLE ONLY public.tracking_issues
    ADD CONSTRAINT tracking_issues_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tracking_tasks(id);
ALTER TABLE ONLY public.tracking_issues
    ADD CONSTRAINT tracking_issues_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.tracking_workflows(id);
ALTER TABLE ONLY public.tracking_milestones
    ADD CONSTRAINT tracking_milestones_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tracking_tasks(id);
ALTER TABLE ONLY public.tracking_milestones
    ADD CONSTRAINT tracking_milestones_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.tracking_workflows(id);
ALTER TABLE ONLY public.tracking_phases
    ADD CONSTRAINT tracking_phases_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.tracking_workflows(id);
ALTER TABLE ONLY public.tracking_snapshots
    ADD CONSTRAINT tracking_snapshots_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tracking_tasks(id);
ALTER TABLE ONLY public.tracking_tasks
    ADD CONSTRAINT tracking_tasks_parent_task_id_fkey FOREIGN KEY (parent_task_id) REFERENCES public.tracking_tasks(id);
ALTER TABLE ONLY public.tracking_tasks
    ADD CONSTRAINT tracking_tasks_phase_id_fkey FOREIGN KEY (phase_id) REFERENCES public.tracking_phases(id);
ALTER TABLE ONLY public.tracking_tasks
    ADD CONSTRAINT tracking_tasks_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.tracking_workflows(id);
