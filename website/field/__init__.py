"""The state of the field: what ``capsmith verify`` says of public providers' newest releases.

``python -m website.field.tags`` or ``python -m website.field.download`` puts release files into a
folder, ``python -m website.field FOLDER`` judges them and writes ``releases.json``, and the page of
the site follows from that file and from ``reviews.yaml``.
"""
