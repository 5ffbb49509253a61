#! /bin/bash

APPNAME="azfiles-nfs"
OPTDIR="/opt/microsoft/${APPNAME}"
OPTDIRDATA="${OPTDIR}/data"

#
# Read ahead size in KB defaults to 16384 (16 MB).
#
AZNFS_READ_AHEAD_KB="${AZNFS_READ_AHEAD_KB:-16384}"
