# Set PULSAR_ADMIN_URL to the admin URL of a broker, for example https://broker-1:8443, and PULSAR_TOKEN_FILE to a file
# with a super-user's token, if the cluster asks for one. curl's own variables and ~/.curlrc hold too (CURL_CA_BUNDLE).
ADMIN=${PULSAR_ADMIN_URL:?set it to the admin URL of a broker, for example https://broker-1:8443}
ADMIN=${ADMIN%/}
[ -z "${PULSAR_TOKEN_FILE:-}" ] || [ -r "$PULSAR_TOKEN_FILE" ] || { say "can't read $PULSAR_TOKEN_FILE" >&2; exit 1; }

headers() { # the token reaches curl through a file descriptor, so no list of processes shows it
  if [ -n "${PULSAR_TOKEN_FILE:-}" ]; then printf 'Authorization: Bearer %s\n' "$(<"$PULSAR_TOKEN_FILE")"; fi
  printf 'Accept: application/json\n'
}

trusted() { # URL: whether it is of a broker of the cluster, with the scheme of the admin URL
  local broker place='^(https?)://(\[[^]]+\]|[^]:/@?#[]+)(:[0-9]+)?/'
  [[ $1 =~ $place && ${BASH_REMATCH[1]} == "${ADMIN%%://*}" ]] || return 1
  for broker in "${BROKERS[@]}"; do
    if [ "${broker%:*}" = "${BASH_REMATCH[2]}" ]; then return 0; fi
  done
  return 1
}

call() { # METHOD PATH [BODY]: print the answer; redirects are followed to brokers of the cluster only
  local url=$ADMIN$2 answer code body=()
  if [ $# -gt 2 ]; then body=(-H 'Content-Type: application/json' --data-binary "$3"); fi
  for _ in 1 2 3 4 5; do
    answer=$(curl -sS --globoff --path-as-is --max-time 90 -X "$1" -H @<(headers) ${body[@]+"${body[@]}"} \
      -w '\n%{http_code} %{redirect_url}' "$url") || return 1
    code=${answer##*$'\n'}
    case $code in
      2*) printf '%s' "${answer%$'\n'*}"; return 0 ;;
      307*) url=${code#* }; trusted "$url" || { say "not followed: a redirect to $url" >&2; return 1; } ;;
      *) say "$1 $2: ${code%% *} ${answer%$'\n'*}" >&2; return 1 ;;
    esac
  done
  return 1
}

owned() { # BROKER: what it owns
  call GET "/admin/v2/brokers/$CLUSTER/$1/ownedNamespaces"
}
