"""Routes of the API, one file per subject: find the object, call one action or query, answer."""
