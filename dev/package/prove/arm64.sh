#!/bin/sh
# On another machine, as root: run the files of the package for arm64 by the Python of a Debian for arm64, which is
# only unpacked:  arm64.sh FILE.deb ROOT
# Its scripts would need a kernel that starts the programs of arm64; here an emulator starts Python, and no more.
set -eu
root=$2
dpkg-deb --extract "$1" "$root"
cp "$(command -v qemu-aarch64-static)" "$root/emulator"
python() { chroot "$root" /emulator /usr/bin/python3 -sE "$@"; }
cat >"$root/load.py" <<'PYTHON'
import platform, sys
sys.path.insert(0, "/usr/lib/nfstuned/vendor")
import markupsafe._speedups, psutil, pydantic_core, yaml._yaml
print("loaded the compiled libraries:", platform.machine(), sys.version.split()[0])
PYTHON
python /load.py
python /usr/lib/nfstuned/__main__.py --version
