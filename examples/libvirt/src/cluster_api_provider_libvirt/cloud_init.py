"""What cloud-init takes bootstrap data from: a disk or a folder for its data source NoCloud."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

from pycdlib import PyCdlib

LABEL = "cidata"
SEED_FOLDER = "/var/lib/cloud/seed/nocloud"
"""Where a container has the files, which has no disks."""


def seed_files(
    user_data: bytes, *, instance_id: str, hostname: str, **meta_data: str
) -> dict[str, bytes]:
    """Return the contents of the files by their names.

    Bootstrap data can use ``meta_data``, such as ``ds.meta_data.provider_id``.
    """
    all_data = {"instance-id": instance_id, "local-hostname": hostname, **meta_data}
    # JSON is YAML.
    return {"meta-data": json.dumps(all_data).encode(), "user-data": user_data}


def seed_image(files: Mapping[str, bytes]) -> bytes:
    """Return an ISO image with the files."""
    image, written = PyCdlib(), io.BytesIO()
    image.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    for name, content in files.items():
        path = f"/{name.replace('-', '').upper()}.;1"
        image.add_fp(io.BytesIO(content), len(content), path, rr_name=name, joliet_path=f"/{name}")
    image.write_fp(written)
    image.close()
    return written.getvalue()
