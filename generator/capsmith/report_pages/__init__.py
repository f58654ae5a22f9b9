"""Reports as pages for people: one model, printed as Markdown or as a single HTML file."""
