"""Values to values: whose server it is, what it should have, what to do, what came of it."""
