BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE approvals (
	id INTEGER NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	approver VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	at_ms BIGINT NOT NULL, 
	expires_at_ms BIGINT NOT NULL, 
	comment TEXT NOT NULL, 
	allows_splits BOOLEAN NOT NULL, 
	accepts_worse BOOLEAN NOT NULL, 
	withdrawn_at_ms BIGINT, accepts_low_confidence BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(digest) REFERENCES plans (digest)
);
INSERT INTO "approvals" VALUES(1,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe','bob','unauthenticated:ops',1795250400000,1795264800000,'first',1,1,1795250400000,1);
INSERT INTO "approvals" VALUES(2,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe','bob','airflow',1795250400000,1795264800000,'again',1,1,NULL,1);
INSERT INTO "approvals" VALUES(3,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead','bob','airflow',1795250460000,1795264860000,'',1,1,NULL,1);
CREATE TABLE events (
	id INTEGER NOT NULL, 
	at_ms BIGINT NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	run_id INTEGER, 
	step_id VARCHAR(200), 
	kind VARCHAR(40) NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "events" VALUES(1,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',NULL,NULL,'proposed','by alice (unauthenticated:ops)');
INSERT INTO "events" VALUES(2,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',NULL,NULL,'approved','by bob (unauthenticated:ops): first');
INSERT INTO "events" VALUES(3,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',NULL,NULL,'withdrawn','by alice (airflow): wrong window');
INSERT INTO "events" VALUES(4,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',NULL,NULL,'approved','by bob (airflow): again');
INSERT INTO "events" VALUES(5,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',1,NULL,'run started','on vm by process 1401, approved by bob (airflow)');
INSERT INTO "events" VALUES(6,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',1,'step-001','step sent','PUT /admin/v2/namespaces/shop/orders/0x00000000_0x80000000/unload?destinationBroker=10.0.0.2:8080');
INSERT INTO "events" VALUES(7,1795250400000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',1,'step-001','reply','204');
INSERT INTO "events" VALUES(8,1795250460000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',1,'step-001','step confirmed','10.0.0.2:8080 owns the bundle');
INSERT INTO "events" VALUES(9,1795250460000,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe',1,NULL,'run done','1 of 1 steps confirmed');
INSERT INTO "events" VALUES(10,1795250460000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',NULL,NULL,'proposed','by alice (airflow)');
INSERT INTO "events" VALUES(11,1795250460000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',NULL,NULL,'approved','by bob (airflow): ');
INSERT INTO "events" VALUES(12,1795250460000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',2,NULL,'run started','on vm by process 1401, approved by bob (airflow)');
INSERT INTO "events" VALUES(13,1795250460000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',2,'step-001','step sent','PUT /admin/v2/namespaces/shop/orders/0x00000000_0x80000000/unload?destinationBroker=10.0.0.3:8080');
INSERT INTO "events" VALUES(14,1795250460000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',2,'step-001','reply','204');
INSERT INTO "events" VALUES(15,1795250520000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',2,'step-001','step confirmed','10.0.0.3:8080 owns the bundle');
INSERT INTO "events" VALUES(16,1795250530000,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead',2,NULL,'run stopped','1 of 2 steps confirmed: step-002, shop/orders/0x80000000_0xffffffff, was not sent: the bundle is on 10.0.0.3:8080, not on 10.0.0.1:8080 any more');
CREATE TABLE plans (
	digest VARCHAR(71) NOT NULL, 
	cluster VARCHAR(200) NOT NULL, 
	cluster_name VARCHAR(200) NOT NULL, 
	snapshot VARCHAR(16) NOT NULL, 
	document TEXT NOT NULL, 
	recorded_at_ms BIGINT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "plans" VALUES('sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe','demo','live','20261121T083000Z','{"cluster":"demo","decision":{"acts_in_cycle":1,"why_nothing":null,"would_pulsar_act":"would act"},"digest":"sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe","identity":{"broker_ids":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"00","validation_sha256":"00"},"limits":{},"load_manager":"modular","memory":{},"placement":"LeastLongTermMessageRate","predicted":{"after":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.5,"mean_ratio":null,"standard_deviation_ratio":null},"before":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.8},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.2},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.8,"mean_ratio":null,"standard_deviation_ratio":null},"model":"proportional"},"pulsar_version":"4.0.8","schema":"pulsar-advisor/plan/1","seed":0,"settings":{},"shedder":"ThresholdShedder","snapshot":"20261121T083000Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x00000000_0x80000000","children":[],"confidence":"high","destination":"10.0.0.2:8080","executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.1:8080","throughput_bytes_per_s":100000,"topics":3},"id":"step-001","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.5,"10.0.0.2:8080":0.5}},"reason":"made by hand","source":"10.0.0.1:8080"}],"view":"fresh"}',1795250400000);
INSERT INTO "plans" VALUES('sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead','demo','live','20261121T083000Z','{"cluster":"demo","decision":{"acts_in_cycle":1,"why_nothing":null,"would_pulsar_act":"would act"},"digest":"sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead","identity":{"broker_ids":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"00","validation_sha256":"00"},"limits":{},"load_manager":"modular","memory":{},"placement":"LeastLongTermMessageRate","predicted":{"after":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.5,"mean_ratio":null,"standard_deviation_ratio":null},"before":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.8},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.2},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.8,"mean_ratio":null,"standard_deviation_ratio":null},"model":"proportional"},"pulsar_version":"4.0.8","schema":"pulsar-advisor/plan/1","seed":1,"settings":{},"shedder":"ThresholdShedder","snapshot":"20261121T083000Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x00000000_0x80000000","children":[],"confidence":"high","destination":"10.0.0.3:8080","executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.2:8080","throughput_bytes_per_s":100000,"topics":3},"id":"step-001","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.5,"10.0.0.2:8080":0.5}},"reason":"made by hand","source":"10.0.0.2:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x80000000_0xffffffff","children":[],"confidence":"high","destination":"10.0.0.2:8080","executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.1:8080","throughput_bytes_per_s":100000,"topics":3},"id":"step-002","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.5,"10.0.0.2:8080":0.5}},"reason":"made by hand","source":"10.0.0.1:8080"}],"view":"fresh"}',1795250460000);
CREATE TABLE proposals (
	id INTEGER NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	proposer VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(digest) REFERENCES plans (digest)
);
INSERT INTO "proposals" VALUES(1,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe','alice','unauthenticated:ops',1795250400000);
INSERT INTO "proposals" VALUES(2,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead','alice','airflow',1795250460000);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	cluster_name VARCHAR(200) NOT NULL, 
	approval_id INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	lease INTEGER NOT NULL, 
	host VARCHAR(200) NOT NULL, 
	pid INTEGER NOT NULL, 
	heartbeat_at_ms BIGINT NOT NULL, 
	started_at_ms BIGINT NOT NULL, 
	ended_at_ms BIGINT, 
	sentence TEXT NOT NULL, 
	undo_plan TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT runs_state CHECK (state IN ('active', 'done', 'refused', 'stopped', 'aborted')), 
	FOREIGN KEY(digest) REFERENCES plans (digest), 
	FOREIGN KEY(approval_id) REFERENCES approvals (id)
);
INSERT INTO "runs" VALUES(1,'sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe','live',2,'done',1,'vm',1401,1795250460000,1795250400000,1795250460000,'1 of 1 steps confirmed','{"cluster":"demo","decision":{"acts_in_cycle":null,"figures":{},"why_nothing":null,"would_pulsar_act":"Pulsar itself would not act: it has no undo"},"digest":"sha256:49b25a2374752effc81e14b6e886c597dc46c019a70bbe211bf0a4221e51ca3d","identity":{"broker_ids":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"00","validation_sha256":"00"},"limits":{},"load_manager":"modular","memory":{"undoes":"sha256:bc694480ca575cda0899ae5a834e7a5f5976f42c87d94bcba4388ab22d737bbe"},"placement":"undo","predicted":{"after":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.8},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.2},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.8,"mean_ratio":null,"standard_deviation_ratio":null},"before":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.5,"mean_ratio":null,"standard_deviation_ratio":null},"model":"proportional"},"pulsar_version":"4.0.8","rests_on":{},"schema":"pulsar-advisor/plan/1","seed":0,"settings":{},"shedder":"undo","snapshot":"20261121T083000Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x00000000_0x80000000","children":[],"confidence":"high","destination":"10.0.0.1:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.2:8080","throughput_bytes_per_s":100000,"topics":3},"failed_checks":[],"id":"undo-step-001","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.8,"10.0.0.2:8080":0.2}},"reason":"undoes step-001","source":"10.0.0.2:8080"}],"view":"fresh"}');
INSERT INTO "runs" VALUES(2,'sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead','live',3,'stopped',1,'vm',1401,1795250530000,1795250460000,1795250530000,'1 of 2 steps confirmed: step-002, shop/orders/0x80000000_0xffffffff, was not sent: the bundle is on 10.0.0.3:8080, not on 10.0.0.1:8080 any more','{"cluster":"demo","decision":{"acts_in_cycle":null,"figures":{},"why_nothing":null,"would_pulsar_act":"Pulsar itself would not act: it has no undo"},"digest":"sha256:c50abdcb6a453f28a81850c9e55ae29ebbef13bced14510ee03ef643fd59e0b3","identity":{"broker_ids":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"00","validation_sha256":"00"},"limits":{},"load_manager":"modular","memory":{"undoes":"sha256:bcc6a9d9600c32266a2c58fb6f437a36602e07d91cfe6d2989b7d6a3d7d74ead"},"placement":"undo","predicted":{"after":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.8},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.2},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.8,"mean_ratio":null,"standard_deviation_ratio":null},"before":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.5,"mean_ratio":null,"standard_deviation_ratio":null},"model":"proportional"},"pulsar_version":"4.0.8","rests_on":{},"schema":"pulsar-advisor/plan/1","seed":1,"settings":{},"shedder":"undo","snapshot":"20261121T083000Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x80000000_0xffffffff","children":[],"confidence":"high","destination":"10.0.0.1:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.2:8080","throughput_bytes_per_s":100000,"topics":3},"failed_checks":[],"id":"undo-step-002","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.5,"10.0.0.2:8080":0.5}},"reason":"undoes step-002","source":"10.0.0.2:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x00000000_0x80000000","children":[],"confidence":"high","destination":"10.0.0.2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":100,"owner":"10.0.0.3:8080","throughput_bytes_per_s":100000,"topics":3},"failed_checks":[],"id":"undo-step-001","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.8,"10.0.0.2:8080":0.2}},"reason":"undoes step-001","source":"10.0.0.3:8080"}],"view":"fresh"}');
CREATE TABLE steps (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	step_id VARCHAR(200) NOT NULL, 
	bundle TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	attempts INTEGER NOT NULL, 
	sent_at_ms BIGINT, 
	ended_at_ms BIGINT, 
	topic TEXT, 
	observation TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT steps_state CHECK (state IN ('pending', 'sent', 'confirmed', 'failed', 'skipped', 'unresolved')), 
	CONSTRAINT steps_once_per_run UNIQUE (run_id, step_id), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "steps" VALUES(1,1,'step-001','shop/orders/0x00000000_0x80000000','confirmed',1,1795250400000,1795250460000,'persistent://shop/orders/b','10.0.0.2:8080 owns the bundle');
INSERT INTO "steps" VALUES(2,2,'step-001','shop/orders/0x00000000_0x80000000','confirmed',1,1795250460000,1795250520000,'persistent://shop/orders/b','10.0.0.3:8080 owns the bundle');
INSERT INTO "steps" VALUES(3,2,'step-002','shop/orders/0x80000000_0xffffffff','pending',0,NULL,NULL,NULL,'');
CREATE INDEX ix_proposals_digest ON proposals (digest);
CREATE INDEX ix_approvals_digest ON approvals (digest);
CREATE INDEX ix_runs_digest ON runs (digest);
CREATE UNIQUE INDEX runs_one_active_per_cluster ON runs (cluster_name) WHERE state = 'active';
CREATE INDEX ix_events_digest ON events (digest);
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
COMMIT;
