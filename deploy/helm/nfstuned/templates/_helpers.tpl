{{- define "nfstuned.name" -}}
{{- $name := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "nfstuned.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nfstuned.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "nfstuned.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version) }}
{{- end -}}

{{- define "nfstuned.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
image: {{ printf "%s@%s" .repository .digest | quote }}
{{- else -}}
image: {{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) | quote }}
{{- end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end -}}
{{- end -}}

{{- define "nfstuned.account" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "nfstuned.name" .) "default") -}}
{{- end -}}
