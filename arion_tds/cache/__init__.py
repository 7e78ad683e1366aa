"""What the control plane's accepted resources look like on disk, so that a restarted gateway serves at once."""
