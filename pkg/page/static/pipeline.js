// The drawing: the way in from left to right, the way back, and the controller's
// loop below. What a request did not come by is drawn too, but faint.

import { changedFields } from "./diff.js";
import { el, arrowKeys, duration } from "./dom.js";
import { t, pick } from "./text.js";

const columns = ["filters", "mux", "handler", "admission", "registry", "storage"];

const titles = {
  filters: "groupFilters", mux: "groupMux", handler: "groupHandler",
  admission: "groupAdmission", registry: "groupRegistry", storage: "groupStorage",
};

const marks = { Passed: "✓", Changed: "Δ", Refused: "✕", Failed: "✕", Unseen: "?" };

/** words are the texts of the outcomes. */
export const words = { Passed: "legendPassed", Changed: "legendChanged", Refused: "legendRefused", Failed: "legendFailed", Unseen: "legendUnseen" };

/** outcomeOf joins what happened at several stages of one name. */
export function outcomeOf(stages) {
  return ["Failed", "Refused", "Changed", "Unseen", "Passed"].find((outcome) => stages.some((stage) => stage.outcome === outcome));
}

/** stagesAt returns what a trace has at a place: NAME, or PASS.NAME in the loop. */
export function stagesAt(trace, place) {
  const [pass, name] = place.includes(".") ? place.split(".") : [null, place];
  const all = pass === null ? trace.stages : trace.passes?.[Number(pass) - 1]?.stages;
  return (all ?? []).filter((stage) => stage.name === name);
}

// The rest of an ID is in the panel.
const shortIDs = (text) => text.replace(/\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "$1…");

// The end of the key, which tells the namespace and the name.
const keyOf = (stage) => stage.details?.find((one) => one.name === "key")?.value.replace(/^.*\/(?=[^/]+\/[^/]+$)/, "…/");

// How many changed fields a box names.
const maxFields = 6;

const total = (stages) => {
  const known = stages.filter((stage) => stage.durationMicroseconds !== undefined);
  return known.length ? known.reduce((sum, stage) => sum + stage.durationMicroseconds, 0) : undefined;
};

/** Drawing draws one trace, or none, by a table of stages. */
export class Drawing {
  constructor(table, open) {
    this.table = table;
    this.open = open; // (name of a trace, place)
  }

  in(group) {
    return this.table.filter((row) => row.group === group);
  }

  row(name) {
    return this.table.find((row) => row.name === name);
  }

  draw(trace, selected) {
    this.trace = trace;
    this.selected = selected;
    const stoppedIn = this.row(trace?.response.stoppedAt)?.group;
    const stop = columns.includes(stoppedIn) ? columns.indexOf(stoppedIn) : columns.length;
    const drawing = el("div", { class: "drawing" },
      el("section", { class: "lane", "aria-label": t("wayIn") },
        el("div", { class: "columns" }, columns.map((group, i) => el("div", { class: `column ${group} ${i > stop ? "beyond" : ""}` },
          el("h3", {}, t(titles[group])), this.in(group).map((row) => this.box(row, row.name)))))),
      this.wayBack(), this.loop(), this.legend(), this.timeline());
    arrowKeys(drawing, ".box");
    return drawing;
  }

  box(row, place, inside) {
    const stages = this.trace ? stagesAt(this.trace, place) : [];
    const outcome = outcomeOf(stages);
    const time = duration(total(stages));
    const isReplayed = stages.some((stage) => stage.replayed);
    const word = outcome ? t(words[outcome]) : t("legendAbsent");
    const subjects = inside ? [inside] : this.subjects(row, stages);
    return el("button", {
      type: "button", class: `box ${outcome?.toLowerCase() ?? "absent"}`, "data-place": place,
      "aria-pressed": String(place === this.selected), "aria-label": [pick(row.title), word, time].filter(Boolean).join(", "),
      title: isReplayed ? t("replayed") : undefined,
      onclick: () => this.open(this.trace?.metadata.name, place),
    },
    el("span", { class: "mark", "aria-hidden": "true" }, marks[outcome] ?? ""),
    el("span", { class: "inside" },
      el("span", { class: "name" }, pick(row.title), stages.length > 1 && el("span", { class: "count" }, ` ×${stages.length}`)),
      (isReplayed || time) && el("span", { class: "time" }, isReplayed && "↻ ", time),
      ["Refused", "Failed"].includes(outcome) && el("span", { class: "word" }, word),
      subjects.map((subject) => el("span", { class: "subject", title: subject }, subject)),
      this.fields(row, stages)));
  }

  /** fields are what was changed, where it is not the whole shape. */
  fields(row, stages) {
    if (!["Defaulting", "Merge", "MutatingAdmission", "Strategy"].includes(row.name)) return "";
    const changed = stages.filter(({ before, after }) => before && after).flatMap(({ before, after }) => changedFields(before, after));
    return changed.length > 0 && el("span", { class: "subject fields" }, `Δ ${[...new Set(changed)].slice(0, maxFields).join(" ")}${changed.length > maxFields ? " …" : ""}`);
  }

  /** subjects are which ones of several: plugins, calls, watches. */
  subjects(row, stages) {
    if (["filters", "mux", "controller"].includes(row.group) || row.name === "Decode") return [];
    if (row.name === "Etcd") return [...new Set(stages.map(keyOf).filter(Boolean))];
    return [...new Set(stages.map((stage) => stage.subject?.replace("application/", "")).filter(Boolean))].slice(0, 3);
  }

  wayBack() {
    const response = this.trace?.response;
    const isRefused = response && (response.code >= 400 || !response.code);
    const answer = el("div", { class: `answer ${response ? (isRefused ? "refused" : "passed") : "absent"}` },
      el("span", { class: "name" }, t("answer")),
      response && el("strong", {}, `${isRefused ? "✕ " : ""}${response.code || "—"} ${response.reason ?? ""}`));
    const back = ["Encoding", "ConversionFromHub", "WatchCache"].map((name) => this.box(this.row(name), name));
    return el("section", { class: "lane", "aria-label": t("wayBack") },
      el("div", { class: "back" }, answer, back, this.in("watches").map((row) => this.box(row, row.name))));
  }

  loop() {
    const passes = this.trace?.passes ?? [];
    const dropped = this.trace?.passesDropped;
    return el("section", { class: `lane loop ${passes.length ? "" : "beyond"}`, "aria-label": t("loop") },
      el("h3", {}, t("loop"), passes.length === 0 && el("span", { class: "why" }, this.whyNoPass())),
      passes.length === 0 ? this.pass(undefined, 0) : passes.map((pass, i) => this.pass(pass, i)),
      dropped && el("p", { class: "hint" }, t("passesDropped", dropped)),
      passes.length > 0 && el("p", { class: "hint" }, "↺ ", t("loopAgain")));
  }

  whyNoPass() {
    if (!this.trace) return "";
    const { request, response, cause } = this.trace;
    if (response.stoppedAt) return t("loopStopped");
    if (["get", "list", "watch"].includes(request.verb)) return t("loopRead");
    if (request.parameters?.includes("dryRun=All")) return t("loopDryRun");
    return t(cause ? "loopOwn" : "loopWaits");
  }

  pass(pass, i) {
    const place = (name) => `${i + 1}.${name}`;
    const isOver = pass?.durationMicroseconds !== undefined;
    const isFailure = pass?.result?.includes(": "); // a reason and a message, not the reason alone
    const head = pass && el("p", { class: "pass" }, el("b", {}, t("pass", i + 1)),
      el("span", { class: isFailure ? "failure" : "" }, ` ${isFailure ? "✕ " : ""}${pass.result ?? ""} `),
      el("span", { class: "time" }, isOver ? duration(pass.durationMicroseconds) : t("passGoesOn")),
      isOver && el("span", { class: `chip ${pass.settled && !isFailure ? "good" : ""}` }, pass.settled ? t("settled") : `↻ ${t("notSettled")}`));
    const boxes = this.in("controller").map((row) => {
      const steps = (pass?.stages ?? []).map((stage, at) => ({ stage, at })).filter(({ stage }) => stage.name === row.name);
      const parts = row.name === "Informer" && "Reflector → FIFO → Indexer";
      const lines = steps.map(({ stage, at }) => this.step(stage, at + 1));
      return el("div", { class: `column ${row.name}` }, this.box(row, place(row.name), parts), lines);
    });
    return el("div", {}, head, el("div", { class: "columns" }, boxes));
  }

  /** step is one line of a pass; the numbers are its order. */
  step(stage, number) {
    const detail = (name) => stage.details?.find((one) => one.name === name)?.value;
    const isStop = ["Refused", "Failed"].includes(stage.outcome);
    const isWait = stage.name === "Queue";
    const call = stage.name === "Status" ? stage.subject?.replace(/ \S*\/(\S+)$/, " …/$1") : stage.subject;
    const trace = stage.name === "Status" && detail("trace");
    const code = ["Neutron", "Status"].includes(stage.name) && detail("status");
    return el("p", { class: `step ${isStop ? "refused" : ""}`, title: stage.subject },
      el("span", { class: "number" }, String(number)),
      el("span", {}, isWait ? t("waited") : shortIDs([call, stage.message].filter(Boolean).join(": ")),
        code && el("b", {}, ` ${isStop ? "✕ " : ""}${code}`),
        el("span", { class: "time" }, ` ${duration(stage.durationMicroseconds)}`),
        trace && el("a", { href: `#${new URLSearchParams({ trace })}` }, ` → ${t("openTrace")}`)));
  }

  legend() {
    const item = (kind, mark, key) => el("li", {}, el("span", { class: `box ${kind}`, "aria-hidden": "true" }, mark), t(key));
    return el("ul", { class: "legend" }, item("passed", "✓", "legendPassed"), item("changed", "Δ", "legendChanged"), item("refused", "✕", "legendRefused"),
      item("unseen", "?", "legendUnseen"), item("absent", "", "legendAbsent"), el("li", {}, el("span", { "aria-hidden": "true" }, "↻"), t("replayed")));
  }

  timeline() {
    if (!this.trace) return "";
    const end = Math.max(this.trace.response.durationMicroseconds, 1);
    const timed = (this.trace.stages ?? []).filter((stage) => stage.startMicroseconds !== undefined && stage.durationMicroseconds !== undefined && stage.name !== "Watch");
    return el("section", { class: "timeline", "aria-label": t("timeline") },
      el("h3", {}, t("timeline"), el("span", { class: "why" }, t("timelineNote"))),
      timed.map((stage) => {
        const bar = el("span", { class: `bar ${stage.outcome.toLowerCase()}` });
        const at = Math.min(stage.startMicroseconds / end, 1);
        bar.style.marginInlineStart = `${100 * at}%`;
        bar.style.width = `${100 * Math.min(stage.durationMicroseconds / end, 1 - at)}%`;
        return el("button", { type: "button", class: "span", tabindex: "-1", onclick: () => this.open(this.trace.metadata.name, stage.name) },
          el("span", { class: "name" }, pick(this.row(stage.name).title), stage.subject && el("span", { class: "subject" }, ` ${stage.subject}`)),
          el("span", { class: "track" }, bar), el("span", { class: "time" }, duration(stage.durationMicroseconds)));
      }));
  }
}
