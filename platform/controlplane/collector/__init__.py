"""The process that watches engines: mirrors what they say, and tells the pages."""
