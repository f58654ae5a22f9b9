// One object in detail.
import { html } from "./html.js";
import { Reason, State, age } from "./tree.js";
import { Actions } from "./actions.js";
import { Time } from "./time.js";

function Conditions({ conditions, now }) {
  if (!conditions.length) return html`<p>None.</p>`;
  const has = conditions.some((each) => each.contract);
  return html`<div class="wide" tabindex="0" role="region" aria-label="Conditions"><table>
    <thead><tr>${has && html`<th scope="col">Contract</th>`}<th scope="col">Type</th><th scope="col">Status</th><th scope="col">Reason</th><th scope="col">Message</th><th scope="col">Since</th></tr></thead>
    <tbody>${conditions.map((each) => html`<tr>${has && html`<td>${each.contract}</td>`}
      <th scope="row">${each.type}</th><td>${each.status}</td><td>${each.reason}</td>
      <td class="message">${each.message}</td><td title=${each.since}>${age(each.since, now)}</td></tr>`)}</tbody>
  </table></div>`;
}

function Owners({ owners, onSelect }) {
  if (!owners.length) return html`None.`;
  return html`<ul>${owners.map((each) => {
    const title = `${each.kind}/${each.name}`;
    return html`<li>${each.id
      ? html`<button type="button" class="name" onClick=${() => onSelect(each.id)}>${title}</button>`
      : title}${each.controller && " (controller)"}</li>`;
  })}</ul>`;
}

function Difference({ lines }) {
  if (!lines.length) return html`<p>No change since this page watches the object.</p>`;
  const tone = (line) => (line.startsWith("@@") ? "place" : line[0] === "+" ? "added" : line[0] === "-" ? "removed" : "");
  return html`<pre tabindex="0">${lines.map((line) => html`<span class=${tone(line)}>${line}${"\n"}</span>`)}</pre>`;
}

function Events({ events, now }) {
  if (!events.length) return html`<p>None.</p>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Events"><table>
    <thead><tr><th scope="col">Age</th><th scope="col">Type</th><th scope="col">Reason</th><th scope="col">Message</th><th scope="col">From</th></tr></thead>
    <tbody>${events.map((each) => html`<tr><td title=${each.time}>${age(each.time, now)}${each.count > 1 && ` (${each.count} times)`}</td>
      <td>${each.type}</td><td>${each.reason}</td><td class="message">${each.message}</td><td>${each.source}</td></tr>`)}</tbody>
  </table></div>`;
}

export function Details({ object, time, actions, onAct, now, onSelect, onClose }) {
  return html`<section class="details" aria-labelledby="object">
    <h2 id="object">${object.kind}/${object.name} <button type="button" onClick=${onClose}>Close</button></h2>
    <p><${State} tone=${object.tone} state=${object.state} paused=${object.paused} /> <${Reason} tone=${object.tone} text=${object.waiting} /></p>
    ${time && html`<${Time} time=${time} now=${now} />`}
    <${Actions} title="Try with this object" actions=${actions} onAct=${onAct} />
    <dl>
      ${object.namespace && html`<dt>Namespace</dt><dd>${object.namespace}</dd>`}
      <dt>Created</dt><dd>${object.created}</dd>
      ${object.deleting && html`<dt>Deletion requested</dt><dd>${object.deleting}</dd>`}
      <dt>Owners</dt><dd><${Owners} owners=${object.owners} onSelect=${onSelect} /></dd>
      <dt>Finalizers</dt><dd>${object.finalizers.join(", ") || "None."}</dd>
      ${object.versions.map((each) => html`<dt>${each.name}</dt><dd>${each.value}</dd>`)}
    </dl>
    <h3>Conditions</h3><${Conditions} conditions=${object.conditions} now=${now} />
    <details><summary>Events (${object.events.length})</summary><${Events} events=${object.events} now=${now} /></details>
    <details open><summary>Difference to the last version</summary><${Difference} lines=${object.difference} /></details>
    <details><summary>YAML</summary><pre tabindex="0">${object.yaml}</pre></details>
  </section>`;
}
