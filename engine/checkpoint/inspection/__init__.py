"""Looking: what a snapshot holds, for people; its rows, its damage, its difference to another."""
