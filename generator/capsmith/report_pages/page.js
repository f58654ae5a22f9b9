"use strict";
{
  const get = (id) => document.getElementById(id);
  const findings = [...document.querySelectorAll(".finding")];
  const homes = findings.map((finding) => finding.parentElement);
  const list = document.createElement("section");
  document.querySelector("main").prepend(list);

  const filter = () => {
    const words = get("filter").value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const finding of findings) {
      const text = finding.textContent.toLowerCase();
      finding.hidden = !words.every((word) => text.includes(word));
      count += finding.hidden ? 0 : 1;
    }
    for (const part of document.querySelectorAll(".group, .findings")) {
      part.hidden = !part.querySelector(".finding:not([hidden])");
    }
    get("count").textContent = `${count} of ${findings.length}`;
  };

  const sort = () => {
    const key = get("order").value;
    if (key === "number") {
      findings.forEach((finding, index) => homes[index].append(finding));
    } else {
      const value = (finding) => finding.dataset[key];
      const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
      const place = ({ dataset }) => [dataset.line, dataset.column].map(Number);
      const compareLines = (a, b) => place(a)[0] - place(b)[0] || place(a)[1] - place(b)[1];
      const inOrder = (a, b) => compare(a, b) || (key === "file" ? compareLines(a, b) : 0);
      list.append(...[...findings].sort(inOrder));
    }
    filter();
  };

  const fold = () => {
    const open = !findings.some((finding) => finding.open);
    for (const finding of findings) finding.open = open;
    get("fold").textContent = open ? "Fold all" : "Unfold all";
  };

  const reveal = () => {
    const finding = findings.find((each) => `#${each.id}` === location.hash);
    if (!finding) return;
    if (finding.hidden) {
      get("filter").value = "";
      filter();
    }
    finding.open = true;
    finding.scrollIntoView();
  };

  get("filter").addEventListener("input", filter);
  window.addEventListener("hashchange", reveal);
  get("order").addEventListener("change", sort);
  get("fold").addEventListener("click", fold);
  get("controls").hidden = findings.length === 0;
  filter();
}
