"""`wheeltapper serve`: runs in a browser. Server-rendered pages; nothing is written, nothing comes from elsewhere."""
