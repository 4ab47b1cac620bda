{{/* At most 52 characters: pods of a StatefulSet have a label of its name and a hash. */}}
{{- define "reprieve.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "reprieve.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reprieve.labels" -}}
{{ include "reprieve.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "reprieve.metadata" -}}
name: {{ include "reprieve.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "reprieve.labels" . | nindent 2 }}
{{- end -}}

{{- define "reprieve.clusterMetadata" -}}
name: {{ include "reprieve.name" . }}
labels:
  {{- include "reprieve.labels" . | nindent 2 }}
{{- end -}}

{{- define "reprieve.tls" -}}
{{- if ne .Values.tls.mode "none" }}true{{ end -}}
{{- end -}}

{{- define "reprieve.scheme" -}}
{{- if include "reprieve.tls" . }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "reprieve.host" -}}
{{ include "reprieve.name" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "reprieve.pageHost" -}}
{{ include "reprieve.name" . }}-page.{{ .Release.Namespace }}.svc
{{- end -}}

{{/* The volume with the CA of clients, if it is not in the server's Secret. */}}
{{- define "reprieve.clientCA" -}}
{{- $ca := .Values.tls.clients.ca -}}
{{- $items := list (dict "key" $ca.key "path" $ca.key) -}}
{{- if $ca.secretName -}}
{{ dict "secret" (dict "secretName" $ca.secretName "items" $items "defaultMode" 0440) | toYaml }}
{{- else if $ca.configMapName -}}
{{ dict "configMap" (dict "name" $ca.configMapName "items" $items) | toYaml }}
{{- end -}}
{{- end -}}

{{- define "reprieve.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{/* Fail if values contradict each other in a way that values.schema.json cannot express. */}}
{{- define "reprieve.validate" -}}
{{- $page := .Values.page -}}
{{- $admitted := .Values.networkPolicy.page -}}
{{- if eq .Values.ledger.mode "file" -}}
{{- $size := .Values.ledger.file.size -}}
{{- $units := dict "Mi" 1 "Gi" 1024 "Ti" 1048576 -}}
{{- $most := div (mul (regexFind "^[0-9]+" $size | int64) (get $units (trunc -2 $size)) 9) 10 -}}
{{- if gt (int64 .Values.ledger.maxMiB) $most -}}
{{- fail (printf "ledger.maxMiB: %d does not fit into ledger.file.size %s; expected at most %d" (int64 .Values.ledger.maxMiB) $size $most) -}}
{{- end -}}
{{- end -}}
{{- if $page.enabled -}}
{{- if eq (int $page.port) (int .Values.config.port) -}}
{{- fail (printf "page.port: %v is config.port, too; expected another port" $page.port) -}}
{{- end -}}
{{- if and $page.ingress.create .Values.networkPolicy.create (not $admitted.cidrs) (not $admitted.namespaces) -}}
{{- fail "page.ingress.create: the NetworkPolicy admits no client to the page; expected the namespace of the Ingress controller in networkPolicy.page.namespaces" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The volume with the CA of PostgreSQL's server. */}}
{{- define "reprieve.ledgerCA" -}}
{{- $postgresql := .Values.ledger.postgresql -}}
{{- if and (eq .Values.ledger.mode "postgresql") $postgresql.caKey -}}
{{- $items := list (dict "key" $postgresql.caKey "path" "ca.crt") -}}
{{ dict "secret" (dict "secretName" $postgresql.secretName "items" $items "defaultMode" 0440) | toYaml }}
{{- end -}}
{{- end -}}

{{/* What the driver of PostgreSQL reads, and where SQLite has its temporary files: nothing else can be written to. */}}
{{- define "reprieve.ledgerEnv" -}}
{{- $postgresql := .Values.ledger.postgresql -}}
{{- if eq .Values.ledger.mode "file" }}
- {name: SQLITE_TMPDIR, value: /ledger}
{{- else if eq .Values.ledger.mode "postgresql" }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef: {name: {{ $postgresql.secretName }}, key: {{ $postgresql.key }}}
{{- if $postgresql.caKey }}
- {name: PGSSLMODE, value: verify-full}
- {name: PGSSLROOTCERT, value: /ledger-ca/ca.crt}
{{- end }}
{{- else }}[]
{{- end }}
{{- end -}}

{{/* The configuration file: config, and the fields that other values set. */}}
{{- define "reprieve.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.policy -}}
{{- $_ := set $config "policy" "/etc/reprieve/policy.yaml" -}}
{{- end -}}
{{- $shadow := list -}}
{{- range $place, $each := .Values.shadow -}}
{{- $shadow = append $shadow (ternary $each (printf "/etc/reprieve/shadow-%d.yaml" $place) (kindIs "string" $each)) -}}
{{- end -}}
{{- if $shadow -}}
{{- $_ := set $config "shadow" $shadow -}}
{{- end -}}
{{- if include "reprieve.tls" . -}}
{{- $tls := dict "certificate" "/tls/tls.crt" "key" "/tls/tls.key" -}}
{{- if .Values.tls.clients.verify -}}
{{- $directory := ternary "/client-ca" "/tls" (ne (include "reprieve.clientCA" .) "") -}}
{{- $_ := set $tls "clientCA" (printf "%s/%s" $directory .Values.tls.clients.ca.key) -}}
{{- $_ := set $tls "allowedClientNames" .Values.tls.clients.allowedNames -}}
{{- end -}}
{{- $_ := set $config "tls" $tls -}}
{{- else -}}
{{- $_ := set $config "allowPlainHTTP" true -}}
{{- end -}}
{{- $ledger := .Values.ledger -}}
{{- if ne $ledger.mode "none" -}}
{{- $location := ternary "/ledger/ledger.db" $ledger.postgresql.url (eq $ledger.mode "file") -}}
{{- $fields := omit $ledger "mode" "file" "postgresql" -}}
{{- $_ := set $config "ledger" (set $fields "location" $location) -}}
{{- end -}}
{{- with .Values.page -}}
{{- if .enabled -}}
{{- $hosts := concat (list (include "reprieve.pageHost" $)) .hosts -}}
{{- if .ingress.create -}}
{{- $hosts = append $hosts .ingress.host -}}
{{- end -}}
{{- $page := dict "host" $config.host "port" .port "tokenFile" "/page-token/token" "hosts" $hosts -}}
{{- $_ := set $config "page" $page -}}
{{- end -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}

{{/* httpTimeout of a verb's entry, well above its deadline: four times as long, and at least 2 s. */}}
{{- define "reprieve.httpTimeout" -}}
{{ max 2 (ceil (divf (mulf 4 (dig "deadlineMilliseconds" .verb 200 .config)) 1000)) }}s
{{- end -}}

{{/* After SIGTERM: endpoints catch up, 10 s for requests, 5 s for Events, and 10 s in reserve. */}}
{{- define "reprieve.grace" -}}
{{ add (ceil (.Values.config.shutdownDelaySeconds | default 0 | float64)) 25 }}
{{- end -}}
