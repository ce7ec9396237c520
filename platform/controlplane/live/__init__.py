"""Live data: topics, latest values, and the WebSocket that carries them."""
