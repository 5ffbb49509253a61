"""The pure decisions: the server of a mount, its policy, the plan, the findings of the rules, the rates."""
