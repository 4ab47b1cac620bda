{{- define "reprieve.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
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

{{/* The configuration file: config, and the fields that other values set. */}}
{{- define "reprieve.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.policy -}}
{{- $_ := set $config "policy" "/etc/reprieve/policy.yaml" -}}
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
