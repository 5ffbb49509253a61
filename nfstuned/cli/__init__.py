"""The command line: a file for each command. Libraries for people's output load when they are used."""
