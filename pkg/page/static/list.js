// The list of requests, which fills as they come.

import { el, duration } from "./dom.js";
import { t } from "./text.js";

const maxShown = 200;
const reads = ["get", "list", "watch"];

const isControllersRead = (summary) => summary.user === "system:apiserver" && reads.includes(summary.verb);

/** isWrite tells that a person, or a program like one, wants to change something. */
export const isWrite = (summary) => !reads.includes(summary.verb) && !summary.cause && !summary.subresource;

// What a request is about, in a few words.
const objectOf = ({ namespace, resource, object, subresource }) => [[namespace, object || resource].filter(Boolean).join("/"), subresource].filter(Boolean).join(" ");

/** List draws the summaries of a stream. */
export class List {
  constructor(stream, title, open) {
    this.stream = stream;
    this.title = title; // of a stage
    this.open = open;
    this.filter = { user: "", verb: "", object: "", controller: false };
    this.paused = null; // the summaries as they were
    this.follow = true;
    this.selected = "";
    this.waiting = false;
    this.announcedAt = 0;
    this.element = el("section", { class: "list", role: "tabpanel" });
    this.draw();
    stream.subscribe((change) => {
      if (change.isNew && !isControllersRead(change.summary)) this.announce(change.summary);
      this.refresh();
    });
  }

  draw() {
    const field = (key, name, control) => el("label", {}, el("span", {}, t(key)), control(name));
    const input = (name) => el("input", { type: "search", value: this.filter[name], autocomplete: "off", spellcheck: "false", oninput: (event) => this.set(name, event.target.value) });
    const verbs = ["create", "update", "patch", "apply", "delete", "deletecollection", "get", "list", "watch"];
    const select = (name) => el("select", { onchange: (event) => this.set(name, event.target.value) },
      el("option", { value: "" }, t("anyVerb")), verbs.map((verb) => el("option", { value: verb, selected: verb === this.filter.verb }, verb)));
    const toggle = (key, isOn, change) => el("label", { class: "switch" }, el("input", { type: "checkbox", checked: isOn, onchange: (event) => change(event.target.checked) }), t(key));
    this.rows = el("div", { class: "rows", role: "listbox", tabindex: "0", "aria-label": t("requests"), onkeydown: (event) => this.key(event) });
    this.pauseButton = el("button", { type: "button", class: "quiet", onclick: () => this.pause() });
    this.live = el("p", { class: "unseen", "aria-live": "polite" });
    this.element.replaceChildren(
      el("div", { class: "filtering" }, field("filterUser", "user", input), field("filterVerb", "verb", select), field("filterObject", "object", input), this.pauseButton),
      el("div", { class: "switches" },
        toggle("follow", this.follow, (isOn) => (this.follow = isOn)),
        toggle("showController", this.filter.controller, (isOn) => this.set("controller", isOn))),
      this.rows, this.live);
    this.render();
  }

  set(name, value) {
    this.filter[name] = value;
    this.render();
  }

  pause() {
    this.paused = this.paused ? null : this.stream.ordered();
    this.render();
  }

  select(name) {
    if (name === this.selected) return;
    this.selected = name;
    this.render();
    this.rows.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** refresh draws soon, however often it is asked to. */
  refresh() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  shown() {
    const { user, verb, object, controller } = this.filter;
    const has = (text, part) => (text ?? "").toLowerCase().includes(part.trim().toLowerCase());
    return (this.paused ?? this.stream.ordered()).toReversed().filter((s) =>
      (controller || !isControllersRead(s)) && has(s.user, user) && (!verb || s.verb === verb) && has(objectOf(s), object));
  }

  render() {
    const shown = this.shown();
    const isEmpty = this.stream.summaries.size === 0;
    this.names = shown.slice(0, maxShown).map((summary) => summary.name);
    this.rows.replaceChildren(...shown.slice(0, maxShown).map((summary) => this.row(summary)));
    if (shown.length > maxShown) this.rows.append(el("p", { class: "hint" }, t("more", shown.length - maxShown)));
    if (shown.length === 0) this.rows.append(el("p", { class: "hint" }, t(isEmpty ? "noRequests" : "noMatch")));
    if (this.names.includes(this.selected)) this.rows.setAttribute("aria-activedescendant", `row-${this.selected}`);
    else this.rows.removeAttribute("aria-activedescendant");
    const known = new Set(this.paused?.map((summary) => summary.name));
    const missed = [...this.stream.summaries.keys()].filter((name) => !known.has(name)).length;
    this.pauseButton.textContent = this.paused ? t("resume", missed) : t("pause");
    this.pauseButton.setAttribute("aria-pressed", String(Boolean(this.paused)));
  }

  row(summary) {
    const isStopped = Boolean(summary.stoppedAt);
    const time = new Date(summary.startTime);
    return el("div", {
      class: `row ${isStopped ? "stopped" : ""} ${summary.cause ? "caused" : ""}`, role: "option", id: `row-${summary.name}`,
      "aria-selected": String(summary.name === this.selected), onclick: () => this.choose(summary.name),
    },
    el("span", { class: `verb ${reads.includes(summary.verb) ? "read" : "write"}`, title: summary.verb }, summary.verb),
    el("span", { class: "object", title: `${objectOf(summary)} (${summary.version})` },
      el("span", {}, summary.object || summary.resource), summary.subresource && el("em", {}, summary.subresource), summary.dryRun && el("em", {}, t("dryRun")),
      summary.namespace && summary.namespace !== "default" && el("span", { class: "namespace" }, summary.namespace)),
    el("span", { class: "code", title: summary.reason }, isStopped && "✕ ", String(summary.code || "—")),
    el("time", { datetime: summary.startTime }, time.toLocaleTimeString([], { hour12: false })),
    el("span", { class: "who", title: summary.userAgent }, isStopped && el("b", {}, t("stoppedAt", this.title(summary.stoppedAt))), summary.user || t("anonymous"), this.loop(summary)),
    el("span", { class: "took" }, duration(summary.durationMicroseconds)));
  }

  /** loop tells how the last pass of the controller ended. */
  loop({ passes, result, settled }) {
    if (!passes) return "";
    const [reason, message] = (result ?? "").split(": ");
    if (message) return el("b", { class: "passes", title: result }, `✕ ${reason}`);
    return el("span", { class: `passes ${settled ? "done" : ""}` }, settled ? `✓ ${reason}` : `↻ ${reason || t("loopRuns")}`);
  }

  /** choose opens what was clicked or walked to. */
  choose(name) {
    this.stopFollowing();
    this.open(name);
  }

  /** stopFollowing is for who looks at something closely. */
  stopFollowing() {
    this.follow = false;
    this.element.querySelector(".switches input").checked = false;
  }

  key(event) {
    const at = this.names.indexOf(this.selected);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.names.length - 1 }[event.key];
    if (next === undefined || this.names.length === 0) return;
    event.preventDefault();
    this.choose(this.names[Math.min(Math.max(next, 0), this.names.length - 1)]);
  }

  announce(summary) {
    if (Date.now() - this.announcedAt < 2000) return;
    this.announcedAt = Date.now();
    this.live.textContent = t("arrived", `${summary.verb} ${objectOf(summary)} ${summary.code ?? ""}`);
  }
}
