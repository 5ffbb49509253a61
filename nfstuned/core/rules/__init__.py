"""The rules of `nfstuned check`: a module for each family, a function for each rule."""
