// The log lines of all components.
import { html } from "./html.js";

export function Logs({ lines, components, component, only, selected, following, onComponent, onOnly, onFollow }) {
  const keepEnd = (element) => {
    if (element && following) element.scrollTop = element.scrollHeight;
  };
  return html`<section class="logs" aria-labelledby="logs">
    <h2 id="logs">Logs</h2>
    <p class="controls">
      <label>Component <select value=${component} onChange=${(event) => onComponent(event.currentTarget.value)}>
        <option value="">all but Kubernetes</option>${components.map((each) => html`<option value=${each}>${each}</option>`)}
      </select></label>
      <label><input type="checkbox" checked=${only} disabled=${!selected} onChange=${(event) => onOnly(event.currentTarget.checked)} /> Only lines of the selected object</label>
      <label><input type="checkbox" checked=${following} onChange=${(event) => onFollow(event.currentTarget.checked)} /> Follow</label>
    </p>
    <pre tabindex="0" role="region" aria-label="Log lines" ref=${keepEnd}>${lines.map((line) => html`<span key=${line.number} class=${line.level}>${!component && html`<b>${line.component}</b> `}${line.text}${"\n"}</span>`)}</pre>
  </section>`;
}
