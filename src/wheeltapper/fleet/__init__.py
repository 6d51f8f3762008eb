"""Many runs at once: cut a folder into parts that can be read apart, read what is new, remember what came of it."""
