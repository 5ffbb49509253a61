"""What is to be measured, what figures mean, and what they advise."""
