"""Experiments: one module a chapter, from a profile to result rows."""
