"""Small seeds whose jobs send their first messages at once: many of them show races that few of the large ones meet."""
