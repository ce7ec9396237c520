"""Jobs: registered, deployed in attempts, watched, restarted, rescaled."""
