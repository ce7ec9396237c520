"""The JSON of every request and answer as types: what the OpenAPI document is made of."""
