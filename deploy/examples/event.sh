#!/bin/sh
# Prints an Event as a controller would report it now. The server adds the rest.
#
#   deploy/examples/event.sh | kubectl create -f -
cat <<EOF
apiVersion: events.k8s.io/v1
kind: Event
metadata:
  generateName: hello-
  namespace: default
eventTime: "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"
type: Normal
reason: Greeted
action: Greeting
note: Hello from the first minute.
regarding: {apiVersion: v1, kind: Pod, name: web-0, namespace: default}
reportingController: example.com/first-minute
reportingInstance: first-minute-1
EOF
