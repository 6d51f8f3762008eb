"""The instrument for language-model agents: evidence about runs, served over the Model Context Protocol.

`desk` answers (plain Python, no SDK), `roots` says what may be read, `server` binds both to the official SDK (extra [mcp]).
"""
