-- Run once, by the superuser of the image, when the volume is new: Airflow owns its database and nothing else.
\set airflow `cat /run/secrets/airflow_database_password`
CREATE ROLE airflow LOGIN PASSWORD :'airflow';
ALTER DATABASE airflow OWNER TO airflow;
REVOKE ALL ON DATABASE airflow FROM PUBLIC;
