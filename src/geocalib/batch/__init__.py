"""Photos by the million to tables: any kind of input, on one machine or a cluster, resumable."""
