// The tree of objects, as rows of a table.
import { html } from "./html.js";

export function age(time, now) {
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  if (!(seconds >= 0)) return "";
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function State({ tone, state, paused }) {
  const word = state || (tone === "neutral" ? "" : tone);
  return html`${word && html`<span class=${`state ${tone}`}>${word}</span>`}${paused && html` <span class="state paused">Paused</span>`}`;
}

function Name({ row, selected, onSelect, onToggle }) {
  const title = row.kind ? `${row.kind}/${row.name}` : row.name;
  const role = row.role && html`<span class="role">${row.role} </span>`;
  if (row.count) {
    return html`${role}<button type="button" class="toggle" aria-expanded=${row.is_open ? "true" : "false"}
      onClick=${() => onToggle(row.id)}>${title}</button>`;
  }
  if (!row.kind || row.kind === "Server") return html`${role}<span>${title}</span>`;
  return html`${role}<button type="button" class="name" aria-pressed=${row.id === selected ? "true" : "false"}
    onClick=${() => onSelect(row.id)}>${title}</button>`;
}

export function Tree({ rows, selected, now, onSelect, onToggle }) {
  return html`<table class="tree">
    <caption>Objects</caption>
    <thead><tr><th scope="col">Object</th><th scope="col">State</th><th scope="col">Age</th><th scope="col">Waits for</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${row.id === selected ? "selected" : ""}>
      <td><span class="indent" style=${{ paddingInlineStart: `${row.depth * 1.4}em` }}><span class="unseen">Level ${row.depth + 1}: </span>
        <${Name} row=${row} selected=${selected} onSelect=${onSelect} onToggle=${onToggle} /></span></td>
      <td><${State} tone=${row.tone} state=${row.state} paused=${row.is_paused} /></td>
      <td>${age(row.created, now)}</td>
      <td class="waiting">${row.waiting}</td>
    </tr>`)}</tbody>
  </table>`;
}
