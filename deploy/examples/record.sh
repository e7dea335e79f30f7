#!/bin/sh
# Records an Event and lists what is there, with nothing but curl and sed.
#
#   record.sh http://127.0.0.1:9000/oauth2/token http://127.0.0.1:8080 demo demo-secret
set -eu
token_url=$1 events_url=$2 client_id=$3 client_secret=$4
events=$events_url/apis/events.k8s.io/v1/namespaces/default/events

token=$(curl -sSf "$token_url" -d grant_type=client_credentials \
  --data-urlencode "client_id=$client_id" --data-urlencode "client_secret=$client_secret" |
  sed 's/.*"access_token":"\([^"]*\)".*/\1/')

curl -sSf "$events" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' --data-binary @- <<EOF
{
  "metadata": {"generateName": "nightly-"},
  "eventTime": "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)",
  "type": "Normal", "reason": "Finished", "action": "Backup", "note": "backup of orders finished",
  "regarding": {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly", "namespace": "default"},
  "reportingController": "example.com/backup", "reportingInstance": "backup-$(hostname)"
}
EOF
echo

curl -sSf "$events?fieldSelector=reason=Finished&limit=10&pretty=true" -H "Authorization: Bearer $token"
