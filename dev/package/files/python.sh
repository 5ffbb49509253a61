# Sourced: sets $python to the interpreter for nfstuned, or to nothing where there is none.
# shellcheck shell=sh disable=SC2034,SC3013  # -ef is in POSIX since 2024, and was in dash and bash before
# The libraries in /usr/lib/nfstuned/vendor are compiled for these versions.
versions="3.14 3.13 3.12 3.11 3.10"
python=
# First the one that the distribution calls python3: it may come with the distribution's python3-systemd.
for version in $versions; do
	if [ /usr/bin/python3 -ef "/usr/bin/python$version" ]; then
		python=/usr/bin/python$version
		return 0
	fi
done
# Else the newest: the python3 of RHEL 9 and of SLES 15 is older than any of these.
for version in $versions; do
	if [ -x "/usr/bin/python$version" ]; then
		python=/usr/bin/python$version
		return 0
	fi
done
