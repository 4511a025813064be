PAUSE_S=${PAUSE_S:-10}         # between two calls
HOLD_S=${HOLD_S:-60}           # how long the first call must hold before the second is sent
WAIT_S=${WAIT_S:-60}           # how long a bundle may take to arrive
MAX_AGE_S=${MAX_AGE_S:-21600}  # the greatest age of the snapshot
ASKED=" $* " SOME_ONLY=''
SENT=0 LAST_BUNDLE='' LAST_BROKER=''

say() { printf '%s\n' "$*"; }
stop() { printf 'stopped: %s\n' "$*" >&2; exit 1; }

# Arithmetic with anything else would end the function that waits, and the script would go on.
for limit in PAUSE_S HOLD_S WAIT_S MAX_AGE_S; do
  [[ ${!limit} =~ ^(0|[1-9][0-9]{0,9})$ ]] || stop "$limit is not a whole number of seconds: ${!limit}"
done

for word in "$@"; do
  [[ $word == --splits ]] && continue
  [[ $STEPS == *" $word "* ]] || stop "there is no step $word; the steps are:$STEPS"
  SOME_ONLY=yes
done
age_s=$(($(date +%s) - TAKEN_AT))
[ "$age_s" -ge -300 ] || stop "the figures are from $((-age_s / 60)) min in the future: check this machine's clock"
[ "$age_s" -le "$MAX_AGE_S" ] || stop "the figures are $age_s s old, more than MAX_AGE_S=$MAX_AGE_S: make a new plan, or raise it"

owns() { # BROKER BUNDLE...: whether the broker lists one of the bundles among its own
  local text bundle
  text=$(owned "$1") || stop "can't read which bundles $1 owns"
  text=" $(printf '%s' "$text" | tr '"{},\n\t' '      ') "
  shift
  for bundle in "$@"; do
    if [[ $text == *" $bundle "* ]]; then return 0; fi
  done
  return 1
}

is_split() { # BUNDLE BROKER CHILD...: whether the bundle that this broker had is split: then some broker owns a child
  local bundle=$1 source=$2 broker
  shift 2
  if owns "$source" "$@"; then return 0; fi
  if owns "$source" "$bundle"; then return 1; fi
  for broker in "${BROKERS[@]}"; do
    if owns "$broker" "$@"; then return 0; fi
  done
  return 1
}

refused() { # STEP
  stop "$1 was not accepted, or its outcome is unknown: find out which broker owns its bundle, then run this again"
}

expect_owner() { # BUNDLE BROKER
  owns "$2" "$1" || stop "$1 is not on $2 any more, and nothing was sent for it: make a new plan"
}

begin() { # STEP BUNDLE BROKER [CHILD...]: whether the step is asked for, and not done yet; with children it is a split
  local step=$1 bundle=$2 broker=$3
  shift 3
  [[ -z $SOME_ONLY || $ASKED == *" $step "* ]] || return 1
  if [ $# -gt 0 ]; then
    if is_split "$bundle" "$broker" "$@"; then
      say "$step: $bundle is split already"
      return 1
    fi
  elif [ -n "$broker" ] && owns "$broker" "$bundle"; then
    say "$step: $bundle is on $broker already"
    return 1
  fi
  if [ "$SENT" -eq 1 ]; then sleep "$HOLD_S"; elif [ "$SENT" -gt 1 ]; then sleep "$PAUSE_S"; fi
  if [ "$SENT" -gt 0 ]; then
    owns "$LAST_BROKER" "$LAST_BUNDLE" || stop "$LAST_BUNDLE did not stay on $LAST_BROKER: find out why first"
  fi
  say "$step: $bundle"
}

arrives() { # BUNDLE BROKER: wait for it there; without a broker, anywhere
  local deadline=$(($(date +%s) + WAIT_S)) broker
  while :; do
    for broker in ${2:+"$2"} "${BROKERS[@]}"; do
      [ -z "$2" ] || [ "$broker" = "$2" ] || continue
      if owns "$broker" "$1"; then
        say "  $1 is on $broker"
        SENT=$((SENT + 1)) LAST_BUNDLE=$1 LAST_BROKER=$broker
        return
      fi
    done
    [ "$(date +%s)" -lt "$deadline" ] || break
    sleep 1
  done
  for broker in "${BROKERS[@]}"; do
    if owns "$broker" "$1"; then stop "$1 is on $broker, not on $2: $MISSED"; fi
  done
  stop "no broker owns $1 after $WAIT_S s: no client asked for it; look up one of its topics, then find out which broker owns it"
}

are_at() { # BROKER CHILD...: wait for the children of a split at the broker that had the bundle
  local broker=$1 child before=$SENT
  shift
  for child in "$@"; do arrives "$child" "$broker"; done
  SENT=$((before + 1))
}
