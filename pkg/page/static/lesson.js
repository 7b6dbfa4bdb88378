// How a lesson is drawn, and how it sees that it is done.

import { el } from "./dom.js";
import { copyButton } from "./stage.js";
import { pick, t } from "./text.js";

const command = (text, kind) => el("div", { class: "copied" }, el("pre", { class: `command ${kind}`, tabindex: "0" }, text), copyButton(() => `${text}\n`));

/** Note is a text with commands and nothing to check. */
export class Note {
  constructor(title, text, commands) {
    Object.assign(this, { title, text, commands });
  }

  draw() {
    return el("div", { class: "lesson" }, el("p", {}, pick(this.text)), this.commands.map((text) => command(text, "note")));
  }
}

/** Lesson is a note that is done once a trace shows it. */
export class Lesson {
  constructor(number, lesson) {
    Object.assign(this, lesson, { number });
    this.title = { en: `${number}. ${lesson.title.en}`, zh: `${number}. ${lesson.title.zh}` };
    this.found = []; // the names of traces, kept when those are gone
    this.isStale = false; // something came since the last look
    this.isLooking = false;
  }

  /** draw returns an element that follows what comes. page is:
   *   subscribe(listener)  calls back with {type, summary, isNew} for each trace;
   *                        returns what ends that
   *   summaries()          those there are, the oldest first
   *   trace(name)          a promise of a whole trace, or of null
   *   open(name, stage)    shows a trace, and a stage of it if one is named: as in
   *                        v1alpha1, or PASS.STAGE for one of a pass, from 1
   *   write(text, verb)    puts a Network into the editor, to be sent as create,
   *                        update or apply */
  draw(page) {
    const status = el("p", { role: "status" });
    this.show = () => {
      status.className = `chip ${this.found.length ? "good" : ""}`;
      status.textContent = this.found.length ? `✓ ${t("lessonDone")}` : `○ ${t("lessonOpen")}`;
    };
    this.show();
    page.subscribe(({ type, summary }) => (type === "state" || (summary && this.isAbout(summary))) && this.look(page));
    this.look(page);
    return el("div", { class: "lesson", "data-lesson": this.number },
      status, el("p", {}, pick(this.text)), this.commands.map((text) => command(text, "run")),
      this.draft && el("button", { type: "button", class: "quiet", onclick: () => page.write(this.draft, "create") }, t("lessonDraft")),
      el("h3", {}, t("lessonLook")),
      el("ul", { class: "looks" }, this.looks.map(([stage, text, which = 0]) =>
        el("li", {}, el("button", { type: "button", class: "link", "data-stage": stage, onclick: () => page.open(this.found[which], stage) }, `→ ${pick(text)}`)))));
  }

  /** look searches once at a time, and once more if more came meanwhile. */
  async look(page) {
    this.isStale = true;
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      while (this.isStale && this.found.length === 0) {
        this.isStale = false;
        const traces = [];
        for (const { name } of page.summaries().filter(this.isAbout)) {
          traces.push(...[await page.trace(name)].filter(Boolean));
          this.found = this.find(traces).map((trace) => trace.metadata.name);
          if (this.found.length > 0) break; // there may be hundreds
        }
      }
      this.show();
    } catch {
      // The header tells that there is no connection; what comes next is looked at.
    } finally {
      this.isLooking = false;
    }
  }
}
