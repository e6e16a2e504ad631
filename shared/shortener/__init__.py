"""What the URL shortener keeps and how it reads a visit. An application on top of the jobs; the jobs do not know it."""
