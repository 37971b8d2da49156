CREATE TABLE public.alembic_version_deepwork (
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
ALTER TABLE ONLY public.deepwork_events ALTER COLUMN seq SET DEFAULT nextval('public.deepwork_events_seq_seq'::regclass);
INSERT INTO public.alembic_version_deepwork VALUES ('0001');
INSERT INTO public.deepwork_events VALUES (1, 726, 'core', 'session:started', 's1', 1795056065104, 'local', '{"at":"2026-01-01T12:00:00.000000+00:00","kind":"started","step_id":null,"detail":{"n":1}}');
INSERT INTO public.deepwork_events VALUES (2, 726, 'acme', 'task:done', 'wf_1', 1795056065104, 'ada', '{"b":[1,null],"a":"ü"}');
INSERT INTO public.deepwork_feed VALUES (true, 0);
INSERT INTO public.deepwork_leases VALUES ('t1', 1, 'ada', 1795056066104);
INSERT INTO public.deepwork_requests VALUES ('ada', 'claim', 'r1', 'e5d5f7c1d225fd6b13623ebb1b5b9d075c705659f81868b1e37005a0923b0346', '{"task":"t1"}', 1795056065104);
INSERT INTO public.deepwork_schemas VALUES ('deepwork', 1, '1.0.0.dev0', '1.0.0.dev0', 1795056064879);
INSERT INTO public.deepwork_sessions VALUES ('laptop', '/projects/demo', 's1', 1, 1, 'active', '2026-01-01T12:00:00.000000+00:00', 1, false, false, '{"session_id":"s1","job_name":"demo","workflow_name":"main","step_id":"a","goal":"Größe, 数据","status":"active","started_at":"2026-01-01T12:00:00.000000+00:00","updated_at":"2026-01-01T12:00:00.000000+00:00","principal":"local"}', '{"schema_version":1,"revision":1,"session_id":"s1","status":"active","job_name":"demo","workflow_name":"main","current_step_id":"a","started_at":"2026-01-01T12:00:00.000000+00:00","updated_at":"2026-01-01T12:00:00.000000+00:00","completed_at":null,"principal":"local","goal":"Größe, 数据","instance_id":null,"current_entry_index":0,"abort_reason":null,"branch_name":null,"parents":[],"step_progress":{},"abort_reply":null,"definition":null,"history":[{"at":"2026-01-01T12:00:00.000000+00:00","kind":"started","step_id":null,"detail":{"n":1}}]}');
SELECT pg_catalog.setval('public.deepwork_events_seq_seq', 2, true);
ALTER TABLE ONLY public.alembic_version_deepwork
    ADD CONSTRAINT alembic_version_deepwork_pkc PRIMARY KEY (version_num);
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
CREATE INDEX deepwork_events_order ON public.deepwork_events USING btree (xid, seq);
CREATE INDEX deepwork_events_workflow ON public.deepwork_events USING btree (workflow_id, xid, seq);
CREATE INDEX deepwork_leases_holder ON public.deepwork_leases USING btree (holder);
CREATE INDEX deepwork_requests_at ON public.deepwork_requests USING btree (at);
CREATE INDEX deepwork_sessions_id ON public.deepwork_sessions USING btree (session_id);
CREATE INDEX deepwork_sessions_listing ON public.deepwork_sessions USING btree (machine, project, archived, updated_at);
