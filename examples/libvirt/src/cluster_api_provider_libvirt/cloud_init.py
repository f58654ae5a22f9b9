"""The disk from which cloud-init takes bootstrap data: its data source NoCloud."""

from __future__ import annotations

import io
import json

from pycdlib import PyCdlib

LABEL = "cidata"


def seed_image(user_data: bytes, *, instance_id: str, hostname: str, provider_id: str) -> bytes:
    """Return an ISO image.

    Bootstrap data can use what it says of the machine, such as ``ds.meta_data.provider_id``.
    """
    meta_data = {
        "instance-id": instance_id,
        "local-hostname": hostname,
        "provider_id": provider_id,
    }
    # JSON is YAML.
    files = {"meta-data": json.dumps(meta_data).encode(), "user-data": user_data}
    image, written = PyCdlib(), io.BytesIO()
    image.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    for name, content in files.items():
        path = f"/{name.replace('-', '').upper()}.;1"
        image.add_fp(io.BytesIO(content), len(content), path, rr_name=name, joliet_path=f"/{name}")
    image.write_fp(written)
    image.close()
    return written.getvalue()
