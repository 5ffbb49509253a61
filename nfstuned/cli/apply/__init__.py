"""`nfstuned apply` and `nfstuned undo`: the read-ahead, and each other thing that it can change."""
