"""Mistakes in reconcilers of machine pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import PLACES, Kit, Mistake, edit_controller, read_example

_POOL = "tidal_machine_pool"
_GROUPS = "src/*/server_groups.py"
_POOLS: Final = {
    "never deletes a server": Mistake(
        _GROUPS, "for server in servers[size:]:", "for server in servers[:0]:"
    ),
    "creates another group at each call": edit_controller(
        _POOL, "pool.external_id, pool.name,", "f'{pool.external_id}{uuid.uuid4()}', pool.name,"
    ),
    "replaces all servers when the size changes": Mistake(
        _GROUPS,
        "servers = self.servers(external_id)\n            outdated",
        "servers = self.servers(external_id)\n"
        "            if len(servers) != size:\n"
        "                for old in servers:\n"
        "                    self._cloud.delete_server(old.id)\n"
        "                servers = []\n            outdated",
    ),
    "does not look at the size": edit_controller(_POOL, "else pool.replicas\n", "else 1\n"),
    "returns one provider id for all": edit_controller(
        _POOL, "provider_id=server.provider_id", "provider_id='tidal://one'"
    ),
    "forgets to delete the group": edit_controller(
        _POOL, "self._groups.delete(pool.external_id)", "None"
    ),
    "needs the MachinePool to delete": edit_controller(
        _POOL,
        "if self._groups.delete(pool.external_id)",
        "if pool.machine_pool and self._groups.delete(pool.external_id)",
    ),
    "reports other versions at each call": edit_controller(
        _POOL, "version=server.version,", "version=f'v1.30.{uuid.uuid4().int % 99}',"
    ),
    "does not replace outdated servers": Mistake(
        _GROUPS, "if version and server.version != version]", "if server is None]"
    ),
    "reports the desired version of outdated servers": edit_controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server), version=pool.version\n"
        "                )\n"
        "                for server in servers\n"
        "            ],",
    ),
    "writes back a size that its own autoscaler may have changed": edit_controller(
        _POOL,
        "exists = self._groups.find(pool.external_id) is not None\n"
        "        # Another autoscaler may change the group's size at any moment: never write back a"
        " size.\n"
        "        size = None if exists and pool.replicas_managed_elsewhere else pool.replicas\n",
        "group = self._groups.find(pool.external_id)\n"
        "        size = group.size if group and pool.replicas_managed_elsewhere"
        " else pool.replicas\n",
    ),
    "overrules its own autoscaler": edit_controller(
        _POOL,
        "size = None if exists and pool.replicas_managed_elsewhere else pool.replicas",
        "size = pool.replicas if exists else pool.replicas",
    ),
    "reports of a machine what belongs to another position": edit_controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server),\n"
        "                    conditions=_instance(other).conditions,\n"
        "                )\n"
        "                for server, other in zip(servers, reversed(servers))\n"
        "            ],",
    ),
    "reports the zone of a position in the list": edit_controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server),\n"
        "                    status=TidalMachinePoolInstanceStatus(zone=f'zone-{place}'),\n"
        "                )\n"
        "                for place, server in enumerate(reversed(servers))\n"
        "            ],",
    ),
    "returns nothing": edit_controller(
        _POOL, "return InfraMachinePoolState(", "return None and str("
    ),
    "requests one machine, always": edit_controller("tidal_node_pool", "return None", "return 1"),
    "creates machines of pools again": edit_controller(
        "tidal_machine",
        "self._cloud.create_server(\n                machine.external_id,",
        "self._cloud.create_server(\n                f'{machine.external_id}{uuid.uuid4()}',",
    ),
    "creates machines of pools in any failure domain": edit_controller(
        "tidal_machine", PLACES, "            )"
    ),
    "reports no capacity": edit_controller("tidal_machine", '{"cpu": "2", "memory": "4Gi"}', "{}"),
}
KITS: Final[Mapping[str, Kit]] = {
    "pools": Kit(read_example("pools"), _POOLS, wait_seconds=40),
}
