"""Names that follow from other names."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith.provider.naming import (
    camel,
    kebab,
    name_attribute,
    name_module,
    pascal,
    pluralise,
    snake,
    title,
)

# What gobuffalo/flect v1.0.3 answers (contract rule CRD-02); no English, so not to be improved.
TABLE = """
    foomachine:foomachines fooconfig:fooconfigs fooproxy:fooproxies foogateway:foogateways
    fooidentity:fooidentities fooindex:fooindices fooinfo:fooinfoes fooleaf:fooleaves
    fooradius:fooradii foostatus:foostatuses foobus:foobuses foovirus:fooviruses
    foonexus:foonexuses foobox:fooboxes fooswitch:fooswitches fooaccess:fooaccesses
    ipaddress:ipaddresses inclusterippool:inclusterippools foohardware:foohardwares
    foosoftware:foosoftwares fooinformation:fooinformation fooequipment:fooequipment
    metal3data:metal3data foomedia:foomedia foonews:foonews fooseries:fooseries
    foochassis:foochassis fooaxis:fooaxis foodns:foodns fooos:fooos foofish:foofish
    foosheep:foosheep fooperson:foopeople foochild:foochildren foomouse:foomice
    foostaff:foostaffs foomachinetemplate:foomachinetemplates fooproxytemplate:fooproxytemplates
    axis:axes ox:oxen toe:toes die:dice use:uses alias:aliases footoe:footoes fooox:foooxes
    cacti:cacti cactuses:cactuses bases:bases basis:bases ellipses:ellipses medium:media
    oases:oases crisis:crises fookey:fookeys foozoo:foozoos fooquiz:fooquizzes foohero:fooheroes
    fooshelf:fooshelves fooroof:fooroofs fooknife:fooknives fooplateau:fooplateaux
    foohouse:foohouses foospouse:foospouses foofocus:foofoci fooworkspace:fooworkspaces
    fooquota:fooquotas foocache:foocaches foovertex:foovertices fooprocess:fooprocesses
    foobase:foobases fooanalysis:fooanalyses foostadium:foostadiums foodatacentre:foodatacentres
"""
PLURALS = dict(pair.split(":") for pair in TABLE.split())


@pytest.mark.parametrize(("word", "plural"), PLURALS.items())
def test_plurals_are_those_of_cluster_api(word: str, plural: str) -> None:
    """Proves: CRD-02."""
    assert pluralise(word) == plural


def test_modules_of_kinds() -> None:
    names = {name_module(kind, ("VSphere", "KubeVirt")) for kind in ("VSphereVM", "KubeVirtIPPool")}
    assert names == {"vsphere_vm", "kubevirt_ip_pool"}
    assert name_module("VSphereVM") == "v_sphere_vm"


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("AcmeMachine", "acme_machine acme-machine acmeMachine AcmeMachine"),
        ("diskGiB", "disk_gib disk-gib diskGiB DiskGiB"),
        ("providerID", "provider_id provider-id providerID ProviderID"),
        ("podIPs", "pod_ips pod-ips podIPs PodIPs"),
        ("enableIPv6", "enable_ipv6 enable-ipv6 enableIPv6 EnableIPv6"),
        ("IPv4Address", "ipv4_address ipv4-address ipv4Address IPv4Address"),
        ("podIPv6CIDRs", "pod_ipv6_cidrs pod-ipv6-cidrs podIPv6CIDRs PodIPv6CIDRs"),
        ("IPAddressPool", "ip_address_pool ip-address-pool ipAddressPool IPAddressPool"),
        ("HTTPServer", "http_server http-server httpServer HTTPServer"),
        ("K3sServer", "k3s_server k3s-server k3sServer K3sServer"),
        ("x509Cert", "x509_cert x509-cert x509Cert X509Cert"),
        ("vCPUs", "v_cpus v-cpus vCPUs VCPUs"),
        ("acme-cloud", "acme_cloud acme-cloud acmeCloud AcmeCloud"),
        ("already_snake", "already_snake already-snake alreadySnake AlreadySnake"),
        ("A", "a a a A"),
    ],
)
def test_spellings(name: str, spellings: str) -> None:
    assert [snake(name), kebab(name), camel(name), pascal(name)] == spellings.split()


def test_titles() -> None:
    assert title("acme-cloud") == "Acme Cloud"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("class", "class_"),
        ("from", "from_"),
        ("match", "match_"),
        ("type", "type_"),
        ("None", "none"),
    ],
)
def test_attributes_are_no_keywords(name: str, expected: str) -> None:
    assert name_attribute(name) == expected


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9]*", fullmatch=True))
def test_any_name_gives_an_attribute(name: str) -> None:
    text = name_attribute(name)
    assert text.isidentifier()
    assert not keyword.iskeyword(text)
    assert text == text.lower()
    assert snake(name).replace("_", "") == name.lower()


@given(st.from_regex(r"[a-z][a-z0-9]*", fullmatch=True))
def test_any_kind_has_a_plural(word: str) -> None:
    assert pluralise(word)
    assert pluralise(word + "template") == word + "templates"
