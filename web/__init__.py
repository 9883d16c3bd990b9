"""The browser's side of the server: routes, templates, static files. No rule and no query in here."""
