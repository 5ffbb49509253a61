# shellcheck shell=sh
# Sourced by the proofs, which run as root in a fresh Debian.
top=$(mktemp -d)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

quietly() {
	"$@" >/tmp/said 2>&1 || {
		cat /tmp/said
		fail "$*"
	}
}

# Make a package in $top/repository that has a file of this system, or nothing, and provides the names that follow.
stand_in() {
	name=$1 file=$2
	shift 2
	{
		printf 'Name: %s\nVersion: 1\nRelease: 1\nSummary: A stand-in\nLicense: none\nAutoReqProv: no\n' "$name"
		for provided; do echo "Provides: $provided"; done
		printf '%%description\nA stand-in\n%%install\n'
		[ -z "$file" ] || printf 'install -D %s %%{buildroot}%s\n' "$file" "$file"
		printf '%%files\n%s\n' "$file"
	} >"$top/$name.spec"
	quietly rpmbuild -bb --quiet --define "_topdir $top" --define "_rpmdir $top/repository" \
		--define "__os_install_post %{nil}" --define "debug_package %{nil}" "$top/$name.spec"
}

# Make this Debian look like RHEL to a package of rpm: the requirements, and the folders that filesystem and
# systemd have there.
like_rhel() {
	# The plugin that gives scripts a network of their own needs a / that is a mount point; a chroot's is not.
	mkdir -p /etc/rpm
	echo '%__transaction_unshare %{nil}' >/etc/rpm/macros
	mkdir -p "$top/repository" /usr/share/licenses /usr/share/fish/vendor_completions.d \
		/usr/share/zsh/site-functions /usr/lib/systemd/catalog /usr/lib/systemd/system-preset
	stand_in base "" /bin/sh findutils "glibc = 2.34" "libudev.so.1()(64bit)" "libgcc_s.so.1()(64bit)"
}
