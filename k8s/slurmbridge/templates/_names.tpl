{{- define "slurmbridge.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "slurmbridge.selector" -}}
app.kubernetes.io/name: slurmbridge
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "slurmbridge.loginSelector" -}}
app.kubernetes.io/name: slurmbridge-login
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "slurmbridge.labels" -}}
{{ include "slurmbridge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "slurmbridge.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "slurmbridge.jobs" -}}
{{ .Values.jobs.namespace | default .Release.Namespace }}
{{- end -}}
