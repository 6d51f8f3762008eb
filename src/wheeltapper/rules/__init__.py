"""Rules: signs and causes, one file each."""
