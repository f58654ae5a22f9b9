"""Tags by which resources are found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import ResourceTypeType
    from mypy_boto3_ec2.type_defs import FilterTypeDef, TagSpecificationTypeDef, TagTypeDef

OWNER_TAG = "ec2.cluster.x-k8s.io/owner"


@dataclass(frozen=True, slots=True)
class Owner:
    """The object that resources belong to: a cluster, a machine or a security group."""

    id: str
    """Its ``short_id``: no more than 32 letters and digits, which is a valid name everywhere."""
    name: str
    cluster: str | None
    """Name of the Cluster whose tag the resources get, if any."""
    additional_tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of a new resource; the cloud controller manager needs the last."""
        tags = {"Name": self.name, **self.additional_tags, OWNER_TAG: self.id}
        if self.cluster is not None:
            tags[f"kubernetes.io/cluster/{self.cluster}"] = "owned"
        return tags

    def tags_for(self, *types: ResourceTypeType) -> list[TagSpecificationTypeDef]:
        """Return an argument with which resources exist with their tags, or not at all."""
        tags: list[TagTypeDef] = [{"Key": key, "Value": each} for key, each in self.tags.items()]
        return [{"ResourceType": each, "Tags": tags} for each in types]


def owned_by(owner_id: str) -> list[FilterTypeDef]:
    """Return an argument that finds the resources of an owner."""
    return [{"Name": f"tag:{OWNER_TAG}", "Values": [owner_id]}]
