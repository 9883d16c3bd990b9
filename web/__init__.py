"""The browser's side of the house: routes, templates, static files. No rule and no query in here."""
