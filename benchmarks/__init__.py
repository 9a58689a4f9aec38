"""How fast, how large and how lean the project is, each as a command of its own. README.md says how to read them."""
