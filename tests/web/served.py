"""Names that the tests of the server share."""

TOKEN = "a-token-for-tests"
HOSTILE = "<img src=x onerror=document.title=1>&\"'"
