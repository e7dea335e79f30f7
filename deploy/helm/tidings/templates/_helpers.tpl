{{- define "tidings.labels" -}}
{{ include "tidings.selector" . }}
app.kubernetes.io/part-of: tidings
app.kubernetes.io/version: {{ splitList "@" (include "tidings.tag" .) | first | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Names are those of the Kustomize bases, unless values give them a prefix, as each release of a namespace beside the first needs.
The longest name, eventsvc-aggregate-metrics, leaves 36 characters for it. Labels say eventsvc all the same: alerts select by them. */ -}}
{{- define "tidings.prefix" -}}
{{- $prefix := .Values.fullnameOverride -}}
{{- if and .Values.nameOverride (not $prefix) -}}
{{- $prefix = ternary .Release.Name (printf "%s-%s" .Release.Name .Values.nameOverride) (contains .Values.nameOverride .Release.Name) -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $prefix) }}{{ fail (printf "nameOverride: no Service is named %s-eventsvc: set fullnameOverride" $prefix) }}{{ end -}}
{{- end -}}
{{- with $prefix }}{{ trunc 36 . | trimSuffix "-" }}-{{ end -}}
{{- end }}

{{- define "tidings.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "tidings.tag" -}}
{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "tidings.image" -}}
{{- $image := .root.Values.image -}}
{{- with .root.Values.global.imageRegistry | default $image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- $image.repository }}/{{ .name }}:{{ include "tidings.tag" . }}
{{- with ternary $image.tokensvcDigest $image.digest (eq .name "tokensvc") }}@{{ . }}{{ end }}
{{- end }}

{{- /* What a pod has above its spec: the labels of the chart, and those and the annotations of its values. */ -}}
{{- define "tidings.podMeta" -}}
labels: {{- merge (include "tidings.labels" . | fromYaml) .values.podLabels | toYaml | nindent 2 }}
{{- with .values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The variables of a container: those of the chart, unless its values have the same. Each name is there once. */ -}}
{{- define "tidings.env" -}}
{{- $given := dict }}
{{- range .values.env }}{{ $_ := set $given .name true }}{{ end }}
{{- $all := list }}
{{- range .own | fromYamlArray }}{{ if not (hasKey $given .name) }}{{ $all = append $all . }}{{ end }}{{ end }}
{{- concat $all .values.env | toYaml }}
{{- end }}

{{- define "tidings.pod" -}}
enableServiceLinks: false # variables of service links begin as settings do, and unknown settings are refused
securityContext:
  runAsNonRoot: true
  {{- if not .root.Values.openshift }}
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  {{- end }}
  {{- if eq .name "eventsvc" }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "tidings.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* What the kubelet mounts by itself, in a volume that only the container that needs it has. */ -}}
{{- define "tidings.account" -}}
- name: cluster
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 900}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}

{{- /* The authority of eventsvc's certificate; nothing if it is one that the system trusts. Pods wait for it. */ -}}
{{- define "tidings.ca" -}}
{{- if or (not .Values.hub.url) .Values.hub.caConfigMap .Values.hub.caSecret -}}
- name: ca
  {{- if .Values.hub.caConfigMap }}
  configMap: {name: {{ .Values.hub.caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}
  {{- else if .Values.hub.caSecret }}
  secret: {secretName: {{ .Values.hub.caSecret }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
  {{- else if eq .Values.tls.mode "self-signed" }}
  configMap: {name: {{ include "tidings.prefix" . }}eventsvc-ca, items: [{key: ca.crt, path: ca.crt}]}
  {{- else }}
  secret: {secretName: {{ include "tidings.tlsSecret" . }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
  {{- end }}
{{- end }}
{{- end }}

{{- /* How the mirror and aggregate reach the eventsvc that keeps the events of this cluster. */ -}}
{{- define "tidings.connection" -}}
- {name: EVENTSVC_SERVER, value: {{ include "tidings.server" .root }}}
{{- if include "tidings.ca" .root }}
- {name: EVENTSVC_CA_FILE, value: /etc/{{ .name }}/ca/ca.crt}
{{- end }}
{{- with .root.Values.hub.tokenURL }}
- {name: EVENTSVC_TOKEN_URL, value: {{ . | quote }}}
- {name: EVENTSVC_ASSERTION_FILE, value: /var/run/secrets/tokens/eventsvc}
{{- else }}
- {name: EVENTSVC_TOKEN_FILE, value: /var/run/secrets/tokens/eventsvc}
{{- end }}
{{- end }}

{{- /* Their credentials for it. The kubelet replaces the token long before it expires. */ -}}
{{- define "tidings.token" -}}
- name: token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: eventsvc, audience: {{ .Values.hub.audience | quote }}, expirationSeconds: 900}
{{- end }}

{{- define "tidings.tlsSecret" -}}
{{ .Values.tls.secret | default (printf "%seventsvc-tls" (include "tidings.prefix" .)) }}
{{- end }}

{{- define "tidings.hosts" -}}
{{- $service := printf "%seventsvc" (include "tidings.prefix" .) -}}
localhost,127.0.0.1,::1,{{ $service }},{{ $service }}.{{ .Release.Namespace }},{{ $service }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "tidings.publicURL" -}}
{{- if .Values.publicURL }}{{ .Values.publicURL }}
{{- else if .Values.ingress.enabled }}https://{{ .Values.ingress.host }}
{{- else if .Values.httpRoute.enabled }}https://{{ first .Values.httpRoute.hostnames }}
{{- else }}{{ include "tidings.server" . }}
{{- end }}
{{- end }}

{{- define "tidings.server" -}}
{{ .Values.hub.url | default (printf "https://%seventsvc.%s.svc" (include "tidings.prefix" .) .Release.Namespace) }}
{{- end }}

{{- /* A container of helm test, but for its name and arguments. */ -}}
{{- define "tidings.test" -}}
image: {{ include "tidings.image" (dict "root" .root "name" "eventsvc") }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - {name: EVENTSVC_SERVER, value: {{ include "tidings.server" .root }}}
  - {name: EVENTSVC_CA_FILE, value: /etc/eventsvc-test/ca/ca.crt}
  - {name: EVENTSVC_TOKEN_FILE, value: /var/run/secrets/tokens/eventsvc}
  {{- if ne .group "k8s.io" }}
  - {name: EVENTSVC_GROUP_DOMAIN, value: {{ .group }}}
  {{- end }}
resources:
  requests: {cpu: 10m, memory: 32Mi}
  limits: {memory: 128Mi}
{{ include "tidings.container" . }}
volumeMounts:
  - {name: token, mountPath: /var/run/secrets/tokens, readOnly: true}
  - {name: ca, mountPath: /etc/eventsvc-test/ca, readOnly: true}
{{- end }}

{{/* The resources of mirror.changes, as a JSON list of {group, name}. */}}
{{- define "tidings.changes" -}}
{{- $workloads := list "deployments.apps" "statefulsets.apps" "daemonsets.apps" "cronjobs.batch" "horizontalpodautoscalers.autoscaling" "poddisruptionbudgets.policy" "services" "ingresses.networking.k8s.io" "networkpolicies.networking.k8s.io" "configmaps" "secrets" "nodes" "persistentvolumeclaims" -}}
{{- $found := list -}}
{{- range .Values.mirror.changes -}}
  {{- $names := list . -}}
  {{- if eq . "workloads" -}}{{- $names = $workloads -}}{{- end -}}
  {{- range $names -}}
    {{- $name := . -}}
    {{- range $workloads -}}{{- if eq (splitList "." . | first) $name -}}{{- $name = . -}}{{- end -}}{{- end -}}
    {{- $found = append $found (dict "name" (splitList "." $name | first) "group" (splitList "." $name | rest | join ".")) -}}
  {{- end -}}
{{- end -}}
{{- $found | uniq | toJson -}}
{{- end -}}
