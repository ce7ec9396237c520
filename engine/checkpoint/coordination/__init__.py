"""Deciding: which snapshot is taken when, who has acknowledged, what has failed."""
