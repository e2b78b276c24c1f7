"""taskqueue compared with other task queues, each in one run on one machine."""
