"""Man pages and shell completion, made from the option tables, the field registries and the words of each command."""
