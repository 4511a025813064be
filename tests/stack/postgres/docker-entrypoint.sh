#!/bin/bash
# What the official entry point does with POSTGRES_DB, POSTGRES_PASSWORD_FILE and SQL in /docker-entrypoint-initdb.d.
set -euo pipefail
if [ "$1" != postgres ]; then
  exec "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username postgres --pwfile "$POSTGRES_PASSWORD_FILE" \
    --auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C.UTF-8
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl start --wait --options "-c listen_addresses= -c unix_socket_directories=/var/run/postgresql"
  createdb --username postgres "$POSTGRES_DB"
  for file in /docker-entrypoint-initdb.d/*.sql; do
    psql --username postgres --dbname "$POSTGRES_DB" --no-psqlrc --set ON_ERROR_STOP=1 --file "$file"
  done
  pg_ctl stop --wait
fi
exec "$@" -c 'listen_addresses=*' -c unix_socket_directories=/var/run/postgresql
