#!/bin/sh
# Build the package and the container image of it: sh docs/images/aks/build.sh REGISTRY/nfstuned:0.1.0
set -eu

if [ $# -ne 1 ]; then
	echo "usage: sh docs/images/aks/build.sh NAME:TAG" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../../.." && pwd)

sh "$project/dev/build"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/Dockerfile" "$folder/"
cp "$project"/dist/nfstuned_*_amd64.deb "$folder/nfstuned.deb"
docker build --platform linux/amd64 --tag "$1" "$folder"
echo "Next: docker push $1"
