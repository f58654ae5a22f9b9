// What can be tried in a lab, each with the command that does the same.
import { html } from "./html.js";

export function Actions({ title, actions, onAct }) {
  if (!actions.length) return null;
  return html`<details class="actions"><summary>${title}</summary><ul>${actions.map((each) => html`<li key=${each.id}>
    <button type="button" onClick=${() => onAct(each)}>${each.title}</button> <code>${each.command}</code></li>`)}</ul></details>`;
}
