-- Run once: by the superuser of the image when the volume is new, or by an administrator of a database of your own. The
-- owner migrates the ledger; what the advisor runs as may read, add and update rows, and neither remove one nor touch a
-- trigger.
\set ON_ERROR_STOP on
\set owner `cat /run/secrets/ledger_owner_password`
\set ledger `cat /run/secrets/ledger_database_password`
CREATE ROLE ledger_owner LOGIN PASSWORD :'owner';
CREATE ROLE ledger LOGIN PASSWORD :'ledger';
-- Who is no superuser, as in a managed PostgreSQL, may set up for the owner only as one of its members.
GRANT ledger_owner TO CURRENT_USER;
ALTER DATABASE ledger OWNER TO ledger_owner;
REVOKE ALL ON DATABASE ledger FROM PUBLIC;
GRANT CONNECT ON DATABASE ledger TO ledger;
ALTER DEFAULT PRIVILEGES FOR ROLE ledger_owner GRANT SELECT, INSERT, UPDATE ON TABLES TO ledger;
ALTER DEFAULT PRIVILEGES FOR ROLE ledger_owner GRANT USAGE ON SEQUENCES TO ledger;
-- In a database from before PostgreSQL 15, everybody may add functions and operators that the owner would then call.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO ledger_owner;
