BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
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
	withdrawn_at_ms BIGINT, accepts_low_confidence BOOLEAN DEFAULT 0 NOT NULL, throttle TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(digest) REFERENCES plans (digest)
);
INSERT INTO "approvals" VALUES(1,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a','bob','airflow',1795250400000,1795264800000,'',1,1,NULL,1,'{"canary_hold_s": 0.0, "error_budget": 100, "guard": false, "in_flight": 100, "max_age_s": 315360000, "on_drift": "skip", "pause_s": 0.0, "per_destination": 100, "per_namespace": 100, "per_source": 100, "topics_per_minute": null}');
CREATE TABLE events (
	id INTEGER NOT NULL, 
	at_ms BIGINT NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	run_id INTEGER, 
	step_id VARCHAR(200), 
	kind VARCHAR(40) NOT NULL, 
	detail TEXT NOT NULL, rows TEXT DEFAULT '{}' NOT NULL, chain VARCHAR(64) DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "events" VALUES(1,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',NULL,NULL,'proposed','by alice (airflow)','{"plans/sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a": "48d1702e1d7dbc41d05a89e9645bdb2cedbc207ccedd6a074a73e55c0c6af67d", "proposals/1": "25124d7da2a281a07a2317254036457b9db711e74577ed1c7828b4e4938e2312"}','69cc2234064f51fa89b5846b56da03fd120df943bf6036e33f4e2e2f91b55c63');
INSERT INTO "events" VALUES(2,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',NULL,NULL,'approved','by bob (airflow)','{"approvals/1": "b8d9c35e610dc14737bf2a195a26b9a3843b16a93b6824ef0dd4e3a1740e1b66", "plans/sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a": "48d1702e1d7dbc41d05a89e9645bdb2cedbc207ccedd6a074a73e55c0c6af67d"}','3689ba27356ea6bba2122e3fcbedaf28e99dba0081a54cc6751cd00c4fa0c9c4');
INSERT INTO "events" VALUES(3,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,NULL,'run started','on vm by process 11108, approved by bob (airflow)','{"plans/sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a": "48d1702e1d7dbc41d05a89e9645bdb2cedbc207ccedd6a074a73e55c0c6af67d", "runs/1": "d64b787e9014ddf4f96bbe2afe2e3f981c95e4458fa1758380c1ada7bc7c0e47", "steps/1": "41ca8db3155704c170e50b1d0a49d5bd0d21d9d9b6948be986f7fb29586dfbeb"}','91e89f260897d7da14a734e9b9723dae68b166be0813ad41f4fb1cc82d085cbb');
INSERT INTO "events" VALUES(4,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,NULL,'switched off','{"setting": "loadBalancerSheddingEnabled", "before": "true"}','{}','7417f224982e441c18f36ebbe1b40f6828739f3cd8089ffb709fa1c62905d2f7');
INSERT INTO "events" VALUES(5,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,NULL,'switched off','{"setting": "loadBalancerAutoBundleSplitEnabled", "before": null}','{}','9c770c358c43fe4ba32429090e6543d4ffcaa5d3534175e3aa157e4c035ee449');
INSERT INTO "events" VALUES(6,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,'step-001','step sent','PUT /admin/v2/namespaces/shop/orders/0x00000000_0x80000000/unload?destinationBroker=10.0.0.2:8080','{"steps/1": "695353fcc20124fa2d9741cc9f5a335d05f803bf9600a8491548ce808ecaa25d"}','292c44d257f340255f864dd4c232da8e3e55e3dc9d6a36cf74f15111135715a8');
INSERT INTO "events" VALUES(7,1795250400000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,'step-001','reply','204','{}','de04cbfbadc913c08810eb0f79e9fd1c93cfb20df89ca556c42716908fbcfdc4');
INSERT INTO "events" VALUES(8,1795250460000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,'step-001','step confirmed','10.0.0.2:8080 owns the bundle','{"steps/1": "6f0931c634988fca987b4f33dab7e7e72b7b491b9213e6a430cca531691f859b"}','b81dd5a3a1f0a75a6c6db9bf14c3a00ef799afbcb3523ccfd6c4ecf975197b86');
INSERT INTO "events" VALUES(9,1795250460000,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a',1,NULL,'run done','1 of 1 steps confirmed','{"runs/1": "a1a25e76766306fbebaf27223159b592c3a31a331d259b96e31ea395356b3e5e"}','6e2ae627fb4a7fdc885a65f14ed3e579d5c053f99348846e9710da353902790a');
CREATE TABLE plans (
	digest VARCHAR(71) NOT NULL, 
	cluster VARCHAR(200) NOT NULL, 
	cluster_name VARCHAR(200) NOT NULL, 
	snapshot VARCHAR(16) NOT NULL, 
	document TEXT NOT NULL, 
	recorded_at_ms BIGINT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "plans" VALUES('sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a','demo','live','20261121T083000Z','{"boundaries":[["0x00000000","0x80000000","0xffffffff"]],"cluster":"demo","decision":{"acts_in_cycle":1,"why_nothing":null,"would_pulsar_act":"would act"},"digest":"sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a","identity":{"broker_ids":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"00","validation_sha256":"00"},"limits":{},"load_manager":"modular","memory":{},"placement":"LeastLongTermMessageRate","predicted":{"after":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.5},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.5,"mean_ratio":null,"standard_deviation_ratio":null},"before":{"brokers":{"10.0.0.1:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.8},"10.0.0.2:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.2},"10.0.0.3:8080":{"bundles":1,"msg_rate_per_s":0,"throughput_bytes_per_s":0,"usage_ratio":0.3}},"maximum_ratio":0.8,"mean_ratio":null,"standard_deviation_ratio":null},"model":"proportional"},"pulsar_version":"4.0.8","schema":"pulsar-advisor/plan/5","seed":0,"settings":{},"shedder":"ThresholdShedder","snapshot":"20261121T083000Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x00000000_0x80000000","children":[],"confidence":"high","destination":"10.0.0.2:8080","executable":true,"expect":{"boundaries":0,"msg_rate_per_s":100,"owner":"10.0.0.1:8080","throughput_bytes_per_s":100000,"topics":3},"id":"step-001","namespace":"shop/orders","not_executable_because":null,"predicted":{"brokers":{"10.0.0.1:8080":0.5,"10.0.0.2:8080":0.5}},"reason":"made by hand","source":"10.0.0.1:8080"}],"view":"fresh"}',1795250400000);
CREATE TABLE proposals (
	id INTEGER NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	proposer VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(digest) REFERENCES plans (digest)
);
INSERT INTO "proposals" VALUES(1,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a','alice','airflow',1795250400000);
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
	process_namespace VARCHAR(200) DEFAULT '' NOT NULL, process_began VARCHAR(40) DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT runs_state CHECK (state IN ('active', 'done', 'refused', 'stopped', 'aborted')), 
	FOREIGN KEY(digest) REFERENCES plans (digest), 
	FOREIGN KEY(approval_id) REFERENCES approvals (id)
);
INSERT INTO "runs" VALUES(1,'sha256:e4e1d1187b8199245fb376f0f7f61026f33486d8b87caf2211dafc2f55d0ab9a','live',1,'done',1,'vm',11108,1795250460000,1795250400000,1795250460000,'1 of 1 steps confirmed','231afe47-a1a8-4233-8ae6-a6ac1a2fbfc0 pid:[4026531836]','620281');
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
CREATE TABLE verifications (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	snapshot VARCHAR(16) NOT NULL, 
	at_ms BIGINT NOT NULL, 
	usage_judged BOOLEAN NOT NULL, 
	as_predicted BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT verifications_once_per_snapshot UNIQUE (run_id, snapshot), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE verified_brokers (
	id INTEGER NOT NULL, 
	verification_id INTEGER NOT NULL, 
	broker VARCHAR(200) NOT NULL, 
	before_usage_ratio DOUBLE, 
	predicted_usage_ratio DOUBLE, 
	actual_usage_ratio DOUBLE, 
	predicted_msg_rate_per_s DOUBLE, 
	actual_msg_rate_per_s DOUBLE, 
	predicted_throughput_bytes_per_s DOUBLE, 
	actual_throughput_bytes_per_s DOUBLE, 
	predicted_bundles INTEGER, 
	actual_bundles INTEGER, 
	as_predicted BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
CREATE TABLE verified_bundles (
	id INTEGER NOT NULL, 
	verification_id INTEGER NOT NULL, 
	bundle TEXT NOT NULL, 
	predicted VARCHAR(200), 
	actual VARCHAR(200), 
	as_predicted BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
CREATE INDEX ix_proposals_digest ON proposals (digest);
CREATE INDEX ix_approvals_digest ON approvals (digest);
CREATE INDEX ix_runs_digest ON runs (digest);
CREATE UNIQUE INDEX runs_one_active_per_cluster ON runs (cluster_name) WHERE state = 'active';
CREATE INDEX ix_events_digest ON events (digest);
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events WHEN (EXISTS (SELECT 1 FROM events WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER events_fixed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER plans_no_delete BEFORE DELETE ON plans BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER plans_no_replace BEFORE INSERT ON plans WHEN (EXISTS (SELECT 1 FROM plans WHERE digest = NEW.digest)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER plans_fixed BEFORE UPDATE ON plans BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER proposals_no_delete BEFORE DELETE ON proposals BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER proposals_no_replace BEFORE INSERT ON proposals WHEN (EXISTS (SELECT 1 FROM proposals WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER proposals_fixed BEFORE UPDATE ON proposals BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER approvals_no_delete BEFORE DELETE ON approvals BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER approvals_no_replace BEFORE INSERT ON approvals WHEN (EXISTS (SELECT 1 FROM approvals WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER approvals_fixed BEFORE UPDATE ON approvals WHEN (NEW.id IS NOT OLD.id OR NEW.digest IS NOT OLD.digest OR NEW.approver IS NOT OLD.approver OR NEW.source IS NOT OLD.source OR NEW.at_ms IS NOT OLD.at_ms OR NEW.expires_at_ms IS NOT OLD.expires_at_ms OR NEW.comment IS NOT OLD.comment OR NEW.allows_splits IS NOT OLD.allows_splits OR NEW.accepts_worse IS NOT OLD.accepts_worse OR NEW.accepts_low_confidence IS NOT OLD.accepts_low_confidence OR NEW.throttle IS NOT OLD.throttle) BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER approvals_final BEFORE UPDATE ON approvals WHEN (OLD.withdrawn_at_ms IS NOT NULL) BEGIN SELECT RAISE(ABORT, 'what has ended never changes'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs WHEN (EXISTS (SELECT 1 FROM runs WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER runs_fixed BEFORE UPDATE ON runs WHEN (NEW.id IS NOT OLD.id OR NEW.digest IS NOT OLD.digest OR NEW.cluster_name IS NOT OLD.cluster_name OR NEW.started_at_ms IS NOT OLD.started_at_ms) BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER runs_final BEFORE UPDATE ON runs WHEN (OLD.state IN ('done', 'refused', 'aborted')) BEGIN SELECT RAISE(ABORT, 'what has ended never changes'); END;
CREATE TRIGGER steps_no_delete BEFORE DELETE ON steps BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER steps_no_replace BEFORE INSERT ON steps WHEN (EXISTS (SELECT 1 FROM steps WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER steps_fixed BEFORE UPDATE ON steps WHEN (NEW.id IS NOT OLD.id OR NEW.run_id IS NOT OLD.run_id OR NEW.step_id IS NOT OLD.step_id OR NEW.bundle IS NOT OLD.bundle) BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER steps_final BEFORE UPDATE ON steps WHEN (OLD.state IN ('confirmed', 'failed', 'skipped')) BEGIN SELECT RAISE(ABORT, 'what has ended never changes'); END;
CREATE INDEX ix_verified_bundles_verification_id ON verified_bundles (verification_id);
CREATE INDEX ix_verified_brokers_verification_id ON verified_brokers (verification_id);
CREATE TRIGGER verifications_no_delete BEFORE DELETE ON verifications BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER verifications_no_replace BEFORE INSERT ON verifications WHEN (EXISTS (SELECT 1 FROM verifications WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER verifications_fixed BEFORE UPDATE ON verifications BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER verified_bundles_no_delete BEFORE DELETE ON verified_bundles BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER verified_bundles_no_replace BEFORE INSERT ON verified_bundles WHEN (EXISTS (SELECT 1 FROM verified_bundles WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER verified_bundles_fixed BEFORE UPDATE ON verified_bundles BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
CREATE TRIGGER verified_brokers_no_delete BEFORE DELETE ON verified_brokers BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never removed'); END;
CREATE TRIGGER verified_brokers_no_replace BEFORE INSERT ON verified_brokers WHEN (EXISTS (SELECT 1 FROM verified_brokers WHERE id = NEW.id)) BEGIN SELECT RAISE(ABORT, 'rows of the ledger are never replaced'); END;
CREATE TRIGGER verified_brokers_fixed BEFORE UPDATE ON verified_brokers BEGIN SELECT RAISE(ABORT, 'what the ledger recorded never changes'); END;
COMMIT;
