"""nfstuned keeps NFS clients on Linux at the speed that their server can give."""

__version__ = "0.2.0"
