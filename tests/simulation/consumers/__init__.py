"""An event with three consumers, one of which is broken, slow or stopped, and how late the others begin."""
