"""What `python -m attnbook` needs: the reader's working copy and the book's settings."""
