"""Pages: the public data as HTML, the same for everybody. All writing goes through the API."""
