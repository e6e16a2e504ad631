"""An outage of a downstream for half an hour under steady load: what it costs, and how soon it is over."""
