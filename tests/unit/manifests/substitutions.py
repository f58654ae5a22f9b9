"""Forms of variables, each with its text for clusterctl; None where it refuses the file."""

from __future__ import annotations

VALUES = {
    "A": "foo.bar/foo.baz",
    "B": "Harbour",
    "E": "",
    "V": "v1.33.4",
    "CLUSTER_NAME": "demo",
    "_9": "nine",
    "9A": "digit",
    "É": "summer",
}

FORMS: tuple[tuple[str, str | None], ...] = (
    ("${B}", "Harbour"),
    ("${ B }", "Harbour"),
    ("${B }", "Harbour"),
    ("${_9}${9A}${É}", "ninedigitsummer"),
    ("$B $(B) ^a$ $$ $$${B} $${B} {B}", "$B $(B) ^a$ $ $Harbour ${B} {B}"),
    ("${X:=x}${X:-x}${X=x}${X:+x}${X:?x}", "xxxxx"),
    ("${B:=x}${B:-x}${B=x}${B:+x}${B:?x}", "Harbour" * 5),
    ("${E:=x}", "x"),
    ("${B:=}${B=}", "HarbourHarbour"),
    ("${X:==x}", "=x"),
    ('${X:=""}', '""'),
    ("${X:=a b\n  c}", "a b\n  c"),
    ("${X:=$5}", "$5"),
    ("${X:=$$5}", "$$5"),
    ("${X:=:8443}", ":8443"),
    ("${X:=a{b}", "a{b"),
    # Variables within variables.
    ("${X:=${CLUSTER_NAME}-vnet}", "demo-vnet"),
    ("${X:=${Y:=192.168.0.0/16}}", "192.168.0.0/16"),
    ("${X:=a${Y:=b${Z:=c}d}e}", "abcde"),
    ("${X:=${B^^}-${V%.*}}", "HARBOUR-v1.33"),
    ("${X:=$${B}}", "$Harbour"),
    ("${A//${Y:=o}/0}", "f00.bar/f00.baz"),
    # String functions.
    ("${B,} ${B,,} ${B^} ${B^^} ${B,^}", "harbour harbour Harbour HARBOUR Harbour"),
    ("${#B}", "7"),
    ("${B:0:3} ${B:4} ${B:-1}", "Har our Harbour"),
    ("${B: -3} ${B:0::3} ${B:x} ${B:99} ${B:1:99}", "Harbour Har Harbour  arbour"),
    ("${B:2:y}", "Harbour"),
    ("${V#v} ${V%.*} ${V%%.*} ${V##*.} ${V#*.}", "1.33.4 v1.33 v1 4 33.4"),
    ("${V#[a-z]} ${V#[^a]} ${V#?1} ${V%.[0-9]}", "1.33.4 1.33.4 .33.4 v1.33.4"),
    (
        "${A/foo/x} ${A//foo/x} ${A/#foo/x} ${A/%baz/x}",
        "x.bar/foo.baz x.bar/x.baz x.bar/foo.baz foo.bar/foo.x",
    ),
    ("${A/foo/} ${A//o/}", ".bar/foo.baz f.bar/f.baz"),
    ("${A/\\//-} ${A/foo//x}", "foo.bar-foo.baz x.bar/foo.baz"),
    ("${A/#x/y} ${A/%x/y} ${A/#foo/} ${A/%baz/}", "foo.bar/foo.baz " * 3 + "foo.bar/foo.baz"),
    # Forms that clusterctl refuses.
    *(
        (text, None)
        for text in (
            "${}",
            "${B",
            "${ B:=x }",
            "${B-x}",
            "${B+x}",
            "${B?x}",
            "${B.C}",
            "${B C}",
            "${-B}",
            "${B:}",
            "${B::3}",
            "${B:é}",
            "${#}",
            "${#B:=x}",
            "${B#}",
            "${B%}",
            "${B/}",
            "${B/x}",
            "${B^^^}",
            "${B^x}",
            "${X:=${B-x}}",
            "# ${B-x}",
            "${B!}",
            "${B@U}",
            "${B:=x",
            "${B:0:${X:=1}2}",
        )
    ),
)
