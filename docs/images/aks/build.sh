#!/bin/sh
# Build the package and the container image of it: sh docs/images/aks/build.sh REGISTRY/nfstuned:0.1.0
# ENGINE=podman or ENGINE=buildah builds it with those instead of docker.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: sh docs/images/aks/build.sh NAME:TAG" >&2
	exit 2
fi
engine=${ENGINE:-docker}
command -v "$engine" >/dev/null || {
	echo "$engine is not installed: ENGINE says what builds the image" >&2
	exit 1
}
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../../.." && pwd)

# Its output names the new package: dist/ may have packages of other versions too.
made=$(sh "$project/dev/build" --architecture amd64)
echo "$made"
deb=$(echo "$made" | sed -n 's/^\(.*_amd64\.deb\): [0-9]* bytes$/\1/p')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/Dockerfile" "$folder/"
cp "$deb" "$folder/nfstuned.deb"
"$engine" build --platform linux/amd64 --tag "$1" "$folder"
echo "Next: $engine push $1"
