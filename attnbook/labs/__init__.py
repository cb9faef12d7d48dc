"""Interactive figures, one module a chapter; the engine that runs them is ``engine``."""
