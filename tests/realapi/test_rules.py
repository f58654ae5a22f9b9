"""CEL rules: capsmith and the API server accept the same ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.findings import has_errors
from tests.e2e.releases import is_kubernetes_since
from tests.invalid.cases import judge

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
FIELDS: dict[str, Any] = {
    "text": {"type": "string", "maxLength": 20},
    "nullable": {"type": "string", "nullable": True},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "on": {"type": "boolean"},
    "at": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "pause": {"type": "string", "format": "duration"},
    "data": {"type": "string", "format": "byte"},
    "port": {"x-kubernetes-int-or-string": True},
    "namespace": {"type": "string"},
    "names": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}},
    "rows": {
        "type": "array",
        "maxItems": 3,
        "items": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 3}},
    },
    "tags": {
        "type": "object",
        "maxProperties": 9,
        "additionalProperties": {"type": "string", "maxLength": 9},
    },
    "disks": {
        "type": "array",
        "maxItems": 9,
        "items": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "kind": {"type": "string", "maxLength": 9}},
        },
    },
    "zones": {
        "type": "object",
        "maxProperties": 9,
        "additionalProperties": {
            "type": "object",
            "properties": {"cidr": {"type": "string", "maxLength": 20}},
        },
    },
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "empty": {
        "type": "object",
        "maxProperties": 1,
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True},
    },
    "self": {"type": "string"},
}
GOOD = """
true
self.text == 'a'
self.text.size() > 3 && self.text.startsWith('a') && self.text.matches('^[a-z]+$')
has(self.text) ? self.count > 1 : self.share < 0.5
self.count > 1.5 && self.share >= 1 && self.count < self.share
self.on || !self.on
self.at < timestamp('2030-01-01T00:00:00Z') && self.day.getFullYear() > 2000
self.pause > duration('1h') && self.at + self.pause < self.at
self.data.size() > 3
self.port == 1 || self.port == '80%'
type(self.port) == int ? self.port > 3 : string(self.port).size() < 3
self.__namespace__ == 'a' && self.namespace == 'a'
self.names.all(name, name.startsWith('a'))
self.names.exists_one(name, name == 'a') && self.names.exists(name, name == 'b')
self.names.map(name, name.size()).sum() < 9 && self.names.filter(n, n != '').size() == 2
self.names.isSorted() && self.names.min() == 'a' && self.names.indexOf('a') == 0
self.names.join(',') == 'a,b' && self.text.split(',') == ['a', 'b']
self.rows.all(row, row.all(cell, cell != 'a'))
self.tags.all(name, self.tags[name].size() > name.size())
'a' in self.tags && !('b' in self.names) && has(self.tags.a)
self.disks.all(disk, disk.size > 3 && disk.kind in ['a', 'b'])
self.disks.all(one, self.disks.exists_one(other, other.size == one.size))
self.zones.all(zone, isCIDR(self.zones[zone].cidr))
self.zones.all(zone, cidr(self.zones[zone].cidr).prefixLength() < 25)
cidr('10.0.0.0/8').containsIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))
ip('::1').family() == 6 && ip.isCanonical('::1') && string(ip('::1')) == '::1'
has(self.open)
self.self == 'a'
self.?text.orValue('a') == 'b' && self.?tags[?'a'].hasValue()
optional.of(1).hasValue() && optional.none().orValue(2) == 2
quantity('1Gi').isGreaterThan(quantity('500Mi')) && isQuantity('1')
quantity('1').add(1).asInteger() == 2
sign(quantity('1')) == 1
url('https://example.com/a?b=c').getHost() == 'example.com'
url('https://a').getQuery() == {'b': ['c']}
self.text.find('[0-9]+') == '1' && self.text.findAll('[0-9]').size() == 3
self.text.lowerAscii().trim().replace('a', 'b').substring(1) == 'x' && self.text.indexOf('a') < 3
'%s %d'.format([self.text, self.count]) == 'a 1' && strings.quote(self.text) == '"a"'
!format.dns1123Label().validate(self.text).hasValue()
!format.named('labelValue').value().validate(self.text).hasValue()
semver('1.2.3').isLessThan(semver('1.3.0')) && isSemver('1.0.0')
semver('v1.0.0', true).major() == 1
sets.contains(self.names, ['a']) && sets.intersects(self.names, ['b'])
self.tags.all(name, value, name != value)
self.names.exists(index, name, index > 1 && name == 'a')
self.tags.transformList(name, value, name + value).size() == 2
self == oldSelf
self.text == oldSelf.text && oldSelf.tags == self.tags
has(oldSelf.text) && !has(oldSelf.count)
self.text == "it's" // it's "quoted" (
self.count % 2 == 0 && self.count / 2 > 1 && -self.count < 0
int(self.text) == 1 && double(self.count) > 0.5 && string(self.count) == '1'
bytes(self.text) == self.data
self.at == null
self.disks[0] != null
dyn(self.text) == 1
size(self.names) == 1 && size('a') == 1
{'a': 1}['a'] == 1 && [1, 2][0] == 1
r'\\d' == self.text && '''a''' == self.text
self.port.startsWith('a')
1u < 2
self.text < 'b' && self.on < true && self.data < b'a'
self.at - self.at < duration('1h')
"""
BAD = """
k ===
self.text ==
(self.text == 'a'
self.text == 'a
self.txt == 'a'
has(self.txt)
has(self)
self.text == 1
self.text + 1 == 'a'
self.count == 1.5
self.text > 1
self.count
self.text
[self.text]
self.at < '2030-01-01'
self.names.all(name, name == 1)
self.names.all(name, nam == 'a')
self.names.all('name', true)
self.tags.a.b == 'c'
self.disks.all(disk, disk.weight > 3)
self.disks.size > 3
self.zones.all(zone, self.zones[zone].cidrs == 'a')
self.zones['a'].cidr == 1
self.open.anything == 1
self.any == 1
oldSelf.txt == 'a'
oldSelf.value() == self
old.text == 'a'
isPrime(self.count)
self.text.isPrime()
self.text.size(1) == 1
self.text.substring('a') == 'b'
quantity('1') > quantity('2')
quantity(1).isGreaterThan(quantity('2'))
cidr('10.0.0.0/8').contains('10.0.0.1')
math.greatest(1, 2) == 2
cel.bind(x, 1, x == 1)
self.text.reverse() == 'a'
self.text.matches('(')
self.text.matches('(?=a)')
duration('tomorrow') < self.pause
timestamp('2030') < self.at
self.text === 'a'
self.text = 'a'
self.text and self.on
not self.on
True
self.on ? 'a' : true
self.count in self.names
self.text.orValue('a') == 'b'
optional.of(1) == 1
lambda x: x
self.text == null
self.names == null
self.empty == self.empty
self.text == 'it''s'
quantity('1').sign() == 1
authorizer.group('').resource('pods').check('get').allowed()
[1, 'a'].size() == 2
{'a': 1, 'b': 'c'}.size() == 2
"""


NEWER = """
self.names.distinct() == self.names
self.names.sort() == self.names
"""
"""Rules that API servers accept since v1.35."""


@pytest.mark.parametrize("rule", GOOD.strip().splitlines())
def test_rule_is_accepted(api: KubeClient, rule: str) -> None:
    assert refusal(api, rule) == ""
    assert findings(rule) == []


@pytest.mark.parametrize("rule", BAD.strip().splitlines())
def test_rule_is_refused(api: KubeClient, rule: str) -> None:
    assert refusal(api, rule) != ""
    assert findings(rule) != []


@pytest.mark.parametrize("rule", NEWER.strip().splitlines())
def test_rule_of_newer_servers_is_refused_here(api: KubeClient, rule: str) -> None:
    """A CRD has to work on older ones too."""
    assert (refusal(api, rule) == "") == is_kubernetes_since("v1.35")
    assert findings(rule) != []


def findings(rule: str) -> list[str]:
    found = judge(description(rule))
    return [f"{finding.id}: {finding.message}" for finding in found if has_errors([finding])]


def description(rule: str) -> str:
    value = {
        "type": "object",
        "properties": FIELDS,
        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
    }
    return json.dumps(
        {
            "capsmith": 1,
            "name": "acme",
            "repository": "https://github.com/acme/cluster-api-provider-acme",
            "contracts": ["v1beta2"],
            "releases": {"v0.1": "v1beta2"},
            "infrastructure": {
                "AcmeCluster": {"implements": "InfraCluster"},
                "AcmeMachine": {"implements": "InfraMachine", "spec": {"value": value}},
            },
        }
    )


def refusal(api: KubeClient, rule: str) -> str:
    """Return why the API server refuses a CRD with the rule."""
    value = {
        "type": "object",
        "properties": FIELDS,
        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
    }
    schema = {"type": "object", "properties": {"spec": value}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "rules",
                "singular": "rule",
                "kind": "Rule",
                "listKind": "RuleList",
            },
            "versions": [version],
        },
    }
    try:
        api.request("POST", CRD, body=body)
    except ApiError as error:
        return error.message
    return ""
