"""The browser's side: pages, forms, formats, and the front-end source. No models."""
