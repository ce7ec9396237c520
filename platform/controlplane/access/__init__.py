"""Users, teams, roles and logins: the only functions that turn a request into an object."""
