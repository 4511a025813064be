# pulsar-admin connects as its conf/client.conf says. PULSAR_ADMIN_URL, and PULSAR_TOKEN_FILE (an absolute path), come
# before that, if set.
command -v pulsar-admin >/dev/null || { say 'pulsar-admin is not on PATH' >&2; exit 1; }

pulsar-admin() {
  if [ -n "${PULSAR_TOKEN_FILE:-}" ]; then
    set -- --auth-plugin org.apache.pulsar.client.impl.auth.AuthenticationToken \
      --auth-params "file://$PULSAR_TOKEN_FILE" "$@"
  fi
  if [ -n "${PULSAR_ADMIN_URL:-}" ]; then set -- --admin-url "$PULSAR_ADMIN_URL" "$@"; fi
  command pulsar-admin "$@"
}

owned() { # BROKER: what it owns
  pulsar-admin brokers namespaces "$CLUSTER" --url "$1"
}
