"""Reports as pages for human readers: one model, rendered as Markdown or as a single HTML file."""
