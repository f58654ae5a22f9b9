// The one way to make elements: strings become text nodes, never markup.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
