"""The plan of a measurement, the limits of jobs, and the comparison of settings."""
