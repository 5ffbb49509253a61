"""Values to text for people and for programs: tables, JSON, SARIF, JUnit, metrics, HTML."""
