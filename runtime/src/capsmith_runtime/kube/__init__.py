"""A small level-triggered controller runtime: informers, work queues, patches, leader election.

It knows nothing about Cluster API. Read ``client`` first, then ``informer``, ``workqueue`` and
``controller``.
"""
