// The slots of K-memory: a list of all slots, and bars for the most used ones.

import { bar, byId, element, isolated, setShare } from "./dom.js";
import { weightText } from "./names.js";
import { largest, slotUse } from "./weights.js";

const ALL = "all";
const NUM_BARS = 6; // as many as one sees at a glance; the list has the others

/** The name of a slot, with its number in 1..K as in the project's figures. */
export function slotName(slot) {
  return `Slot ${slot + 1}`;
}

export class SlotChooser {
  /** @param {function} onChoice Called after each choice with the slot, or null for all slots. */
  constructor(onChoice) {
    this.onChoice = onChoice;
    this.panel = byId("slots");
    this.select = byId("slot");
    this.select.addEventListener("change", () => {
      this.choose(this.select.value === ALL ? null : Number(this.select.value));
    });
    this.buttons = [];
  }

  /** Shows the slots of a K-memory, most used first; without scores, hides the panel. */
  setScores(alpha, beta) {
    this.panel.hidden = !beta;
    this.alpha = alpha;
    this.beta = beta;
    this.chosen = null;
    if (!beta) return;
    this.use = slotUse(beta);
    this.select.replaceChildren(
      element("option", { value: ALL }, `All ${this.use.length} slots, combined`),
      ...largest(this.use).map((slot) =>
        element("option", { value: slot },
          `${slotName(slot)} (${weightText(this.use[slot])} of reads)`)),
    );
    this.makeBars(Math.min(NUM_BARS, this.use.length));
  }

  makeBars(count) {
    this.buttons = Array.from({ length: count }, () => {
      const button = element("button", { type: "button", class: "slot-bar" },
        element("span", { class: "slot-name" }), bar(0), element("span", { class: "value" }));
      button.addEventListener("click", () => {
        const slot = Number(button.dataset.slot);
        this.choose(slot === this.chosen ? null : slot);
      });
      return button;
    });
    byId("slot-bars").replaceChildren(...this.buttons.map((each) => element("li", {}, each)));
  }

  choose(slot) {
    this.chosen = slot;
    this.select.value = slot ?? ALL;
    this.markChosen();
    this.onChoice(slot);
  }

  /** Shows the slots that a target piece reads, or that store a source piece, or the averages. */
  show(target, source, name) {
    if (!this.beta) return;
    const heading = byId("slots-of");
    if (target !== null) {
      heading.replaceChildren("Most read by ", isolated(name));
      this.fillBars(this.beta[target]);
    } else if (source !== null) {
      heading.replaceChildren("Store most of ", isolated(name));
      this.fillBars(this.alpha[source]);
    } else {
      heading.textContent = "Most read, on average over the pieces";
      this.fillBars(this.use);
    }
  }

  /** Changes the texts of the existing buttons, so that the focus stays where it is. */
  fillBars(values) {
    const first = largest(values, this.buttons.length);
    first.forEach((slot, i) => {
      const button = this.buttons[i];
      button.dataset.slot = slot;
      button.querySelector(".slot-name").textContent = slotName(slot);
      button.querySelector(".value").textContent = weightText(values[slot]);
      setShare(button.querySelector(".bar-filled"), values[slot] / (values[first[0]] || 1));
    });
    this.markChosen();
  }

  markChosen() {
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.slot) === this.chosen));
    }
  }
}
