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
INSERT INTO "approvals" VALUES(1,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03','operator','airflow',1795340480995,1795354880966,'',1,1,NULL,1,'{"canary_hold_s": 10, "error_budget": 1, "guard": false, "in_flight": 1, "max_age_s": 21600, "on_drift": "stop", "pause_s": 10, "per_destination": 2, "per_namespace": 2, "per_source": 2, "topics_per_minute": null}');
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
INSERT INTO "events" VALUES(1,1795340461211,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',NULL,NULL,'proposed','by admin (airflow)','{"plans/sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03": "c558d514c29b5c5a9f768ef70ca65871e3b0a1f188260a2f5ede0f505c1d0f53", "proposals/1": "216d12d920e4fe4797c1c7a699faef6135f446342e916365844299d9a00a74ee"}','011dae01edf9fcae77a86172ffd9cd5b613f93a3f994efc2ae80a459733d1e8b');
INSERT INTO "events" VALUES(2,1795340481036,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',NULL,NULL,'approved','by operator (airflow): ','{"approvals/1": "2cfa17f9621920a18c80fd5deb915e3ef37a49b3eb90a95b69107a02ea8109c0", "plans/sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03": "c558d514c29b5c5a9f768ef70ca65871e3b0a1f188260a2f5ede0f505c1d0f53"}','2cd1957f781941df366b3450bf6d981ff7d5eeec09c5926bcaece1dd78a35ef0');
INSERT INTO "events" VALUES(3,1795340486844,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,NULL,'run started','on 6b5ffd8aa2d2 by process 1733, approved by operator (airflow)','{"plans/sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03": "c558d514c29b5c5a9f768ef70ca65871e3b0a1f188260a2f5ede0f505c1d0f53", "runs/1": "ae27f44f67fbd2f88e022f8959b259adab2acf3ee7c96a30ab0cdf6241b4aa54", "steps/1": "18cd185d4336dcf8ee54ebf0b72b4e5bc9b6486536acde70b509347cd23f365b", "steps/2": "6024c7a31c469af51ff9357b2ed22e0ab781fbeab6b7454d27a2984b01937569", "steps/3": "4d88624375478d1c42d5da7767b299446ee3c52291c72e725dd4f3c374e2809b", "steps/4": "82bc4f003c48a1988218f6767ff130b041b72d5e322cfb964b21bbe7aaa946a5", "steps/5": "bdafad4dc9035453e45fd395e29b84fe563a081e4ce8e265b4f2a2525bae0a94"}','f7a6ac5b61a373419537689346247fdd6cb24269a742058851b92af48f6cc694');
INSERT INTO "events" VALUES(4,1795340487048,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-003','step sent','PUT /admin/v2/namespaces/retail/payments/0xc0000000_0xffffffff/unload?destinationBroker=broker-2:8080','{"steps/3": "5d2740699b0ab5a8113e48c5d7cdf76eb236c4b6a14772e9ccfbbd23ef8da1de"}','e9467c0f9cf02ddf53d570e2e1d99d1043bfb704a46a86a057bca59638beff06');
INSERT INTO "events" VALUES(5,1795340487130,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-003','reply','204','{}','378398a4c664af973749084ea33c11e8d39d1070382258dedeb2d33a9786edf9');
INSERT INTO "events" VALUES(6,1795340497726,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-003','step confirmed','broker-2:8080 owns the bundle','{"steps/3": "fbb841f1e78042371f2ee487a2725754fecf10232e14755d7b580986445c439b"}','9d3f95a8573fe070d1db22409ba4e71e8acf19ec6773908725b052de3113cf76');
INSERT INTO "events" VALUES(7,1795340507926,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-001','step sent','PUT /admin/v2/namespaces/retail/orders/0xc0000000_0xffffffff/unload?destinationBroker=broker-2:8080','{"steps/1": "5dfe747753e20148fd1ad7a1d4b3145d23466f4ac372940aa3d4212b0a4d0798"}','468b8c7a3cf2af0b1afb8dc12992b5bf374ffb492c4e3dfe17a7cae1f9a4fa29');
INSERT INTO "events" VALUES(8,1795340507983,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-001','reply','204','{}','aa834c14bebbefa51ff6a0288e3b94267cacfff9cda9628f68f0a7dfaf1011a7');
INSERT INTO "events" VALUES(9,1795340508604,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-001','step confirmed','broker-2:8080 owns the bundle','{"steps/1": "6586d481c729d76e47fbb9dee6e56169ffc9e6aa5a77197c7e4794152fb2ae16"}','e5fdd22b07e14b67aa54710dbeed38cb85e72357c9e41a6dab5b0eb59648bb80');
INSERT INTO "events" VALUES(10,1795340519244,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','step sent','PUT /admin/v2/namespaces/telemetry/devices/0x80000000_0xc0000000/unload?destinationBroker=broker-2:8080','{"steps/2": "68147b0981002ba84edf531d6d2dda1ecedb027d0988d1c06408dba297065fc5"}','ce7dc643eb75ea21ee26befe19abc6521a7ed0d34e818db4d83fd140049146a7');
INSERT INTO "events" VALUES(11,1795340519317,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','reply','204','{}','f9081e78bb7af4f530828ee593788ca09068dbc7ebb35ffc02040c6e6bdad14d');
INSERT INTO "events" VALUES(12,1795340523099,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','missed','attempt 1: answer 204, the bundle is on broker-1:8080','{}','594b4a16d7737fa1b9e2742697a4d3098f758ac83955b1d9cc886c6f86a8f9a9');
INSERT INTO "events" VALUES(13,1795340533963,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','step sent','PUT /admin/v2/namespaces/telemetry/devices/0x80000000_0xc0000000/unload?destinationBroker=broker-2:8080','{"steps/2": "8274fddeb148407f81f7fecaf18db598cae4f2e9aaa8c0761099bea8e05db5a2"}','3812b6e8c26a97cb9912e7c16ae59a398e36755604c1fd0340db4bced923ac01');
INSERT INTO "events" VALUES(14,1795340534169,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','reply','204','{}','3587ec2f4856812f289621783c3d145c9755d6cdb67158c17e5d39618a07ad11');
INSERT INTO "events" VALUES(15,1795340538199,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','missed','attempt 2: answer 204, the bundle is on broker-3:8080','{}','18909f0e30951ad87789f11478f8872e2beddd91d895f5409cd90c9b08a2219a');
INSERT INTO "events" VALUES(16,1795340548713,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','step sent','PUT /admin/v2/namespaces/telemetry/devices/0x80000000_0xc0000000/unload?destinationBroker=broker-2:8080','{"steps/2": "da298e8a83faea5fff02b8d103e599310f23387ff0f9bc5aadd664177ba99b3f"}','b474b115b27ac23e99fd17a7b3df891aa1179602f9bf0ee4cbdfdb26f52ed28d');
INSERT INTO "events" VALUES(17,1795340548786,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','reply','204','{}','a83395eb7157c91fbfb8903ee1ab38da43ecf8c64b490353560ba1f1591b1ee6');
INSERT INTO "events" VALUES(18,1795340549332,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-002','step confirmed','broker-2:8080 owns the bundle','{"steps/2": "9758fa80e330b31bf77e106ae47ca43cf94cce52c95dee256deb6bf1a7d12be5"}','415efafab9e2de293afc01c3b363cdff80ad128ba09159f34032401ef0718f53');
INSERT INTO "events" VALUES(19,1795340559673,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-004','step sent','PUT /admin/v2/namespaces/telemetry/devices/0xc0000000_0xffffffff/unload?destinationBroker=broker-2:8080','{"steps/4": "a2b77d22b9178cc8593ac84766f9181d6b08eefb74bb7259c56845fe372e732d"}','872ea4459dc46c69542a97bb1f8ac4f31645272a6df741490c12f86efd43092d');
INSERT INTO "events" VALUES(20,1795340559758,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-004','reply','204','{}','fdfc98befecbd335fd287b5724de3279ebdf6aebab0a417d7d308c8400c8f5c3');
INSERT INTO "events" VALUES(21,1795340560298,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-004','step confirmed','broker-2:8080 owns the bundle','{"steps/4": "be09adf95641e4fe01c6faa356f9c534e083836f4a710f8bdd41e98fd5d5ed30"}','e10e7458fa112c13e175af1ddd3f2983bc7360937907d4a14d43e79e48caa102');
INSERT INTO "events" VALUES(22,1795340755687,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,NULL,'run resumed','on 83cb9a714cb7 by process 63, approved by operator (airflow)','{"runs/1": "69538a2424295942b7bddd13b2766aa921c71a63cca734a2bc880a9ae2d833b0"}','db2d596d8378f759824ad537c5755e70d08c0644075665ba9ac6607440f30a83');
INSERT INTO "events" VALUES(23,1795340766792,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-005','step sent','PUT /admin/v2/namespaces/telemetry/alerts/0x80000000_0xffffffff/unload?destinationBroker=broker-2:8080','{"steps/5": "def7252dd60f22ceeaa21cbda4c98e94e3dd8439bb9ee40597ac345ad95f65c1"}','6e8402968f4bfb29621b8bf45b0b6b7e1a146237aeb666ca5331079b608dc500');
INSERT INTO "events" VALUES(24,1795340767030,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-005','reply','204','{}','77d118d244dd06b279c976ee4f2e1385ddd649d6e346ca9cc861109591605a71');
INSERT INTO "events" VALUES(25,1795340767327,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,'step-005','step confirmed','broker-2:8080 owns the bundle','{"steps/5": "b112756ad5daf69c324f282e9caa828dfff93ff5091bbc9dec93714bcf4c185d"}','26d36eec5518213e828f3ecfc10e894bc394ab70f4e45be620b868e80d18c85c');
INSERT INTO "events" VALUES(26,1795340767576,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,NULL,'run done','5 of 5 steps confirmed','{"runs/1": "54c65beab525ba84b61e061494e5f0770d2e0e06124c0328f1b41e6e6b061123"}','7ba7b4c058fc573e1046eb5eedad8a6a9f4f919578d20cc949f16bc6eccf90b6');
INSERT INTO "events" VALUES(27,1795341043835,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03',1,NULL,'verified','with snapshot 20261122T094621Z: as predicted','{"verifications/1": "b983f25691c56dfd744e7652242d874cd9eaee89afa4f25e444c05da0f6b8418", "verified_brokers/1": "b633c97f5e803576dc18284699b4177a324b5aecc90fd35654ebfeb2f9f0e0b3", "verified_brokers/2": "009cab84aa9282bb58082053205878c0d28640189c5ac69bece67cdd792f0cc2", "verified_brokers/3": "b501c24eac031d43cbd0d95e072eddd99e181dad0963fcb923a5c910b9880ef9", "verified_bundles/1": "dfefe9ebae0789146c13c2e987e6de3b24fb5c31691a8f42faaadbaf2ee10626", "verified_bundles/2": "efbf3c265b0530db2106a59a4aa4cfecbebc2f34645265b92d5cde14e098ed5c", "verified_bundles/3": "07a5f7338ee9dbf10f71add7cd9a46e8ac3244f73a9c64872406e7b49901db3a", "verified_bundles/4": "e7c2a22f3d70ba3554ae7b9205f100b327f4c99e678e08395a7eea120ce8f4d0", "verified_bundles/5": "5cb35e2c6b87a8a0871c882979913dd14c51d12e0fe67e872a3be01a881c17f1"}','7ca34fec59f3a05ec9b07cbf2eba9728a4cc2f53323b67b34fd4bdba7c3d4cd3');
CREATE TABLE plans (
	digest VARCHAR(71) NOT NULL, 
	cluster VARCHAR(200) NOT NULL, 
	cluster_name VARCHAR(200) NOT NULL, 
	snapshot VARCHAR(16) NOT NULL, 
	document TEXT NOT NULL, 
	recorded_at_ms BIGINT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "plans" VALUES('sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03','live','live','20261122T093126Z','{"cluster":"live","decision":{"acts_in_cycle":null,"caveats":[],"figures":{"bundles":7,"clients":29,"excluded":0,"mean_ratio_if_one_more_fails":0.10500959396362304,"moves":5,"not_allowed":0,"unfit":0,"waves":5,"without_room":0},"why_nothing":null,"would_pulsar_act":"Pulsar itself would not act: none of its strategies has this goal"},"digest":"sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03","goal":{"brokers":["broker-3:8080"],"ceiling_ratio":0.85,"kind":"drain","onto":[],"target_ratio":null},"identity":{"broker_ids":["broker-1:8080","broker-2:8080","broker-3:8080"],"cluster_name":"live"},"inputs":{"manifest_sha256":"0504eed3ab3dfb836165333558e4fd6dc60969e3bc3ca47c5ec2b8ad23477e28","validation_sha256":"844dfec65b3bb62c3b4cc9f2e1ef5b26754851d1d8a93c2676ba81e1ac014cf9"},"limits":{"max_splits":null,"max_unloads":100},"load_manager":"modular","memory":{"snapshots":[]},"placement":"","predicted":{"after":{"brokers":{"broker-1:8080":{"bundles":7,"highest_usage_ratio":0.10500959396362304,"lowest_usage_ratio":0.10500959396362304,"msg_rate_per_s":1645.123014154583,"throughput_bytes_per_s":628493.8590504543,"usage_ratio":0.10500959396362304},"broker-2:8080":{"bundles":11,"highest_usage_ratio":0.21845565795898436,"lowest_usage_ratio":0.09708982467651367,"msg_rate_per_s":860.6167740922983,"throughput_bytes_per_s":183383.64120352277,"usage_ratio":0.09708982467651367},"broker-3:8080":{"bundles":2,"highest_usage_ratio":0.1213658332824707,"lowest_usage_ratio":1.1102229481109498e-21,"msg_rate_per_s":7.993605777301127e-15,"throughput_bytes_per_s":-1.0516032489249483e-12,"usage_ratio":0.1213658332824707}},"maximum_ratio":0.1213658332824707,"mean_ratio":0.10782175064086913,"standard_deviation_ratio":0.010108158993016808},"base":{"broker-1:8080":{"highest_ratio":0.10500959444009268,"lowest_ratio":0,"origin":"least_loaded","ratio":0.10500959444009268},"broker-2:8080":{"highest_ratio":0.09708982775000001,"lowest_ratio":0,"origin":"least_loaded","ratio":0.09708982775000001},"broker-3:8080":{"highest_ratio":0.12136583301944967,"lowest_ratio":0,"origin":"least_loaded","ratio":0.12136583301944967}},"before":{"brokers":{"broker-1:8080":{"bundles":7,"highest_usage_ratio":0.10500959396362304,"lowest_usage_ratio":0.10500959396362304,"msg_rate_per_s":1645.123014154583,"throughput_bytes_per_s":628493.8590504543,"usage_ratio":0.10500959396362304},"broker-2:8080":{"bundles":6,"highest_usage_ratio":0.09708982467651367,"lowest_usage_ratio":0.09708982467651367,"msg_rate_per_s":573.807028250515,"throughput_bytes_per_s":123655.87003129446,"usage_ratio":0.09708982467651367},"broker-3:8080":{"bundles":7,"highest_usage_ratio":0.1213658332824707,"lowest_usage_ratio":0.1213658332824707,"msg_rate_per_s":286.8097458417833,"throughput_bytes_per_s":59727.7711722283,"usage_ratio":0.1213658332824707}},"maximum_ratio":0.1213658332824707,"mean_ratio":0.10782175064086913,"standard_deviation_ratio":0.010108158993016808},"model":"base_load"},"pulsar_version":"4.0.8","rests_on":{"split":["brokers.available","brokers.clock","brokers.clock_agrees","brokers.complete","brokers.leader","brokers.load_manager_agrees","brokers.report_age","brokers.reported","brokers.some","brokers.unique","brokers.version_agrees","brokers.web_address","bundles.figures_are_the_owners","bundles.in_boundaries","bundles.is_active","bundles.loaded_is_reported","bundles.long_term_msg_rate_in","bundles.long_term_msg_rate_out","bundles.long_term_msg_throughput_in","bundles.long_term_msg_throughput_out","bundles.not_denormal","bundles.one_owner","bundles.one_report","bundles.owner_is_active","bundles.owners_agree","bundles.ring_from_below","bundles.ring_to_above","bundles.some","bundles.stayed","bundles.unique","capture.columns","capture.duration","capture.required_surfaces","capture.skew","namespaces.boundaries_agree","namespaces.boundaries_ascend","namespaces.boundaries_counted","namespaces.boundaries_known","namespaces.boundaries_readable","namespaces.not_migrated","namespaces.unique","problems.brokers_documents","problems.brokers_lines","problems.bundle_names","problems.clusters_lines","problems.required_surfaces","settings.brokers_agree","settings.some","settings.unique"],"unload":["brokers.available","brokers.bandwidth_in_limit","brokers.bandwidth_in_limit_is_common","brokers.bandwidth_in_percent","brokers.bandwidth_in_usage","brokers.bandwidth_out_limit","brokers.bandwidth_out_limit_is_common","brokers.bandwidth_out_percent","brokers.bandwidth_out_usage","brokers.carried_in","brokers.carried_out","brokers.clock","brokers.clock_agrees","brokers.complete","brokers.cpu_is_measured","brokers.cpu_known","brokers.cpu_limit","brokers.cpu_limit_is_common","brokers.cpu_percent","brokers.cpu_usage","brokers.direct_memory_limit","brokers.direct_memory_limit_is_common","brokers.direct_memory_percent","brokers.direct_memory_usage","brokers.figures_moved","brokers.leader","brokers.load_manager_agrees","brokers.memory_limit","brokers.memory_limit_is_common","brokers.memory_percent","brokers.memory_usage","brokers.msg_rate_in","brokers.msg_rate_in_adds_up","brokers.msg_rate_out","brokers.msg_rate_out_adds_up","brokers.msg_throughput_in","brokers.msg_throughput_in_adds_up","brokers.msg_throughput_out","brokers.msg_throughput_out_adds_up","brokers.report_age","brokers.reported","brokers.some","brokers.unique","brokers.version_agrees","brokers.web_address","bundles.bytes_and_messages","bundles.figures_are_the_owners","bundles.figures_complete","bundles.figures_moved","bundles.in_boundaries","bundles.is_active","bundles.loaded_is_reported","bundles.msg_rate_in","bundles.msg_rate_out","bundles.msg_throughput_in","bundles.msg_throughput_out","bundles.not_denormal","bundles.one_owner","bundles.one_report","bundles.owner_is_active","bundles.owners_agree","bundles.ring_from_below","bundles.ring_to_above","bundles.some","bundles.stayed","bundles.steady","bundles.topics_add_up","bundles.unique","capture.columns","capture.duration","capture.required_surfaces","capture.skew","namespaces.boundaries_agree","namespaces.boundaries_ascend","namespaces.boundaries_counted","namespaces.boundaries_known","namespaces.boundaries_readable","namespaces.brokers_have_domains","namespaces.domains_are_counted","namespaces.group_has_others","namespaces.not_migrated","namespaces.unique","policies.expressions","policies.unique","problems.brokers_documents","problems.brokers_lines","problems.bundle_names","problems.clusters_lines","problems.required_surfaces","settings.brokers_agree","settings.some","settings.unique"]},"schema":"pulsar-advisor/plan/3","seed":0,"settings":{"defaultNamespaceBundleSplitAlgorithm":{"origin":"runtime","value":"range_equally_divide"},"failureDomainsEnabled":{"origin":"runtime","value":"false"},"flowOrQpsDifferenceThresholdPercentage":{"origin":"runtime","value":"10"},"loadBalancerAutoBundleSplitEnabled":{"origin":"runtime","value":"false"},"loadBalancerAutoUnloadSplitBundlesEnabled":{"origin":"runtime","value":"false"},"loadBalancerBandwidthInResourceWeight":{"origin":"runtime","value":"1.0"},"loadBalancerBandwidthOutResourceWeight":{"origin":"runtime","value":"1.0"},"loadBalancerBandwithInResourceWeight":{"origin":"runtime","value":"1.0"},"loadBalancerBandwithOutResourceWeight":{"origin":"runtime","value":"1.0"},"loadBalancerBrokerMaxTopics":{"origin":"runtime","value":"50000"},"loadBalancerBrokerOverloadedThresholdPercentage":{"origin":"runtime","value":"85"},"loadBalancerCPUResourceWeight":{"origin":"runtime","value":"1.0"},"loadBalancerDirectMemoryResourceWeight":{"origin":"runtime","value":"0.0"},"loadBalancerDistributeBundlesEvenlyEnabled":{"origin":"runtime","value":"true"},"loadBalancerEnabled":{"origin":"runtime","value":"true"},"loadBalancerLoadPlacementStrategy":{"origin":"runtime","value":"org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate"},"loadBalancerLoadSheddingStrategy":{"origin":"runtime","value":"org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"},"loadBalancerMaxNumberOfBundlesToSplitPerCycle":{"origin":"runtime","value":"10"},"loadBalancerMemoryResourceWeight":{"origin":"runtime","value":"0.0"},"loadBalancerNamespaceBundleMaxBandwidthMbytes":{"origin":"runtime","value":"100"},"loadBalancerNamespaceBundleMaxMsgRate":{"origin":"runtime","value":"500"},"loadBalancerNamespaceBundleMaxSessions":{"origin":"runtime","value":"1000"},"loadBalancerNamespaceBundleMaxTopics":{"origin":"runtime","value":"1000"},"loadBalancerNamespaceBundleSplitConditionHitCountThreshold":{"origin":"runtime","value":"3"},"loadBalancerNamespaceMaximumBundles":{"origin":"runtime","value":"128"},"loadBalancerSheddingEnabled":{"origin":"runtime","value":"false"},"loadBalancerSheddingExcludedNamespaces":{"origin":"default 4.2.4","value":""},"loadBalancerSheddingGracePeriodMinutes":{"origin":"runtime","value":"30"},"loadBalancerSheddingIntervalMinutes":{"origin":"runtime","value":"1"},"loadManagerClassName":{"origin":"runtime","value":"org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"},"preferLaterVersions":{"origin":"runtime","value":"false"}},"shedder":"drain","snapshot":"20261122T093126Z","steps":[{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0xc0000000_0xffffffff","children":[],"confidence":"high","destination":"broker-2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x40000000","0x80000000","0xc0000000","0xffffffff"],"msg_rate_per_s":85.94149170016418,"owner":"broker-3:8080","throughput_bytes_per_s":24160.310250920425,"topics":3},"failed_checks":[],"id":"step-001","namespace":"retail/orders","not_executable_because":null,"predicted":{"brokers":{"broker-2:8080":0.09708982467651367,"broker-3:8080":0.1213658332824707}},"reason":"drain broker-3:8080: broker-2:8080 then reaches 9.7%, within 85.0%","source":"broker-3:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x80000000_0xc0000000","children":[],"confidence":"high","destination":"broker-2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x40000000","0x80000000","0xc0000000","0xffffffff"],"msg_rate_per_s":144.9035965208341,"owner":"broker-3:8080","throughput_bytes_per_s":21385.860439945718,"topics":4},"failed_checks":[],"id":"step-002","namespace":"telemetry/devices","not_executable_because":null,"predicted":{"brokers":{"broker-2:8080":0.09708982467651367,"broker-3:8080":0.1213658332824707}},"reason":"drain broker-3:8080: broker-2:8080 then reaches 9.7%, within 85.0%","source":"broker-3:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0xc0000000_0xffffffff","children":[],"confidence":"high","destination":"broker-2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x40000000","0x80000000","0xc0000000","0xffffffff"],"msg_rate_per_s":30.449816531744485,"owner":"broker-3:8080","throughput_bytes_per_s":8695.85860513559,"topics":1},"failed_checks":[],"id":"step-003","namespace":"retail/payments","not_executable_because":null,"predicted":{"brokers":{"broker-2:8080":0.09708982467651367,"broker-3:8080":0.1213658332824707}},"reason":"drain broker-3:8080: broker-2:8080 then reaches 9.7%, within 85.0%","source":"broker-3:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0xc0000000_0xffffffff","children":[],"confidence":"high","destination":"broker-2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x40000000","0x80000000","0xc0000000","0xffffffff"],"msg_rate_per_s":23.486921668683898,"owner":"broker-3:8080","throughput_bytes_per_s":5143.023494186289,"topics":4},"failed_checks":[],"id":"step-004","namespace":"telemetry/devices","not_executable_because":null,"predicted":{"brokers":{"broker-2:8080":0.09708982467651367,"broker-3:8080":0.1213658332824707}},"reason":"drain broker-3:8080: broker-2:8080 then reaches 9.7%, within 85.0%","source":"broker-3:8080"},{"action":"unload","after":[],"algorithm":null,"boundaries":[],"bundle":"0x80000000_0xffffffff","children":[],"confidence":"high","destination":"broker-2:8080","doubts":[],"executable":true,"expect":{"boundaries":["0x00000000","0x80000000","0xffffffff"],"msg_rate_per_s":2.027919420356656,"owner":"broker-3:8080","throughput_bytes_per_s":342.71838204027483,"topics":2},"failed_checks":[],"id":"step-005","namespace":"telemetry/alerts","not_executable_because":null,"predicted":{"brokers":{"broker-2:8080":0.09708982467651367,"broker-3:8080":0.1213658332824707}},"reason":"drain broker-3:8080: broker-2:8080 then reaches 9.7%, within 85.0%","source":"broker-3:8080"}],"view":"fresh"}',1795340461200);
CREATE TABLE proposals (
	id INTEGER NOT NULL, 
	digest VARCHAR(71) NOT NULL, 
	proposer VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	at_ms BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(digest) REFERENCES plans (digest)
);
INSERT INTO "proposals" VALUES(1,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03','admin','airflow',1795340461200);
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
INSERT INTO "runs" VALUES(1,'sha256:82dfc8373b55b294df8da91c1b094caf9c44ddfb2207346ac23677238cf82f03','live',1,'done',2,'83cb9a714cb7',63,1795340767493,1795340486835,1795340767504,'5 of 5 steps confirmed','7164311d-fb4e-4d10-881e-2a96d7c01738 pid:[4026533519]','3937555');
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
INSERT INTO "steps" VALUES(1,1,'step-001','retail/orders/0xc0000000_0xffffffff','confirmed',1,1795340507922,1795340508602,'persistent://retail/orders/events-partition-3','broker-2:8080 owns the bundle');
INSERT INTO "steps" VALUES(2,1,'step-002','telemetry/devices/0x80000000_0xc0000000','confirmed',3,1795340548711,1795340549330,'persistent://telemetry/devices/readings-partition-0','broker-2:8080 owns the bundle');
INSERT INTO "steps" VALUES(3,1,'step-003','retail/payments/0xc0000000_0xffffffff','confirmed',1,1795340487043,1795340497717,'persistent://retail/payments/dispute-540','broker-2:8080 owns the bundle');
INSERT INTO "steps" VALUES(4,1,'step-004','telemetry/devices/0xc0000000_0xffffffff','confirmed',1,1795340559671,1795340560295,'persistent://telemetry/devices/firmware-700','broker-2:8080 owns the bundle');
INSERT INTO "steps" VALUES(5,1,'step-005','telemetry/alerts/0x80000000_0xffffffff','confirmed',1,1795340766696,1795340767313,'persistent://telemetry/alerts/fire-204','broker-2:8080 owns the bundle');
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
INSERT INTO "verifications" VALUES(1,1,'20261122T094621Z',1795341043763,0,1);
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
INSERT INTO "verified_brokers" VALUES(1,1,'broker-1:8080',1.05009593963623040768e-01,1.05009593963623040768e-01,6.51485157012939436471e-02,1.64512301415458296106e+03,1.64838356469880636728e+03,6.28493859050454338997e+05,6.31825571133899269605e+05,7,7,1);
INSERT INTO "verified_brokers" VALUES(2,1,'broker-2:8080',9.70898246765136696545e-02,9.70898246765136696545e-02,6.95039939880371104852e-02,8.60616774092298328444e+02,8.47032226407137159209e+02,1.83383641203522769497e+05,1.81580086859265255041e+05,11,11,1);
INSERT INTO "verified_brokers" VALUES(3,1,'broker-3:8080',1.213658332824707059e-01,1.213658332824707059e-01,2.6338975429534911693e-02,7.99360577730112709105e-15,0.0,-1.05160324892494827508e-12,0.0,2,2,1);
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
INSERT INTO "verified_bundles" VALUES(1,1,'retail/orders/0xc0000000_0xffffffff','broker-2:8080','broker-2:8080',1);
INSERT INTO "verified_bundles" VALUES(2,1,'telemetry/devices/0x80000000_0xc0000000','broker-2:8080','broker-2:8080',1);
INSERT INTO "verified_bundles" VALUES(3,1,'retail/payments/0xc0000000_0xffffffff','broker-2:8080','broker-2:8080',1);
INSERT INTO "verified_bundles" VALUES(4,1,'telemetry/devices/0xc0000000_0xffffffff','broker-2:8080','broker-2:8080',1);
INSERT INTO "verified_bundles" VALUES(5,1,'telemetry/alerts/0x80000000_0xffffffff','broker-2:8080','broker-2:8080',1);
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
