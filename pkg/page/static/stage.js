// The panel of one stage: what it is for, and what it did to the request.

import { el, duration } from "./dom.js";
import { diffLines, toYAML } from "./diff.js";
import { outcomeOf, stagesAt, words } from "./pipeline.js";
import { t, pick } from "./text.js";

/** copyButton copies what text returns. */
export function copyButton(text, key = "copy") {
  const button = el("button", {
    type: "button", class: "quiet",
    onclick: async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = `✓ ${t("copied")}`;
    },
  }, t(key));
  return button;
}

/** stagePanel tells of the stages of a trace at a place; without one, what the
 * place is. */
export function stagePanel(trace, place, table, close) {
  const row = table.find((one) => one.name === place.split(".").at(-1));
  if (!row) return "";
  const stages = trace ? stagesAt(trace, place) : [];
  const outcome = outcomeOf(stages);
  return el("aside", { class: "panel", "aria-label": pick(row.title) },
    el("header", {},
      el("h2", {}, pick(row.title)),
      trace && el("span", { class: `chip ${outcome?.toLowerCase() ?? ""}` }, outcome ? t(words[outcome]) : t("legendAbsent")),
      copyButton(() => location.href, "copyLink"),
      el("button", { type: "button", class: "quiet", onclick: close }, `✕ ${t("close")}`)),
    el("div", { class: "content" },
      el("div", { class: "about" },
        el("p", {}, pick(row.purpose)),
        el("h3", {}, t("whereDone")),
        el("ul", { class: "functions" }, row.functions.map((one) => el("li", {}, el("code", {}, shortened(one.package), ".", el("b", {}, one.name)))))),
      el("div", { class: "happened" },
        trace && stages.length === 0 && el("p", { class: "hint" }, t("absentStage")),
        trace?.omitted && el("p", { class: "hint" }, t("omitted", trace.omitted)),
        stages.map(instance))));
}

const shortened = (path) => path.replace("github.com/samplecrd/network-apiserver/", "");

function instance(stage) {
  const isStop = ["Refused", "Failed"].includes(stage.outcome);
  return el("section", { class: `instance ${isStop ? "refused" : ""}` },
    el("h3", {}, isStop && "✕ ", stage.subject || stage.name, " ",
      el("span", { class: "time" }, duration(stage.durationMicroseconds), stage.replayed && ` ↻ ${t("replayed")}`)),
    stage.message && el("p", { class: "message" }, stage.message),
    stage.errors?.length > 0 && el("ul", { class: "errors", "aria-label": t("errors") }, stage.errors.map((error) => el("li", {}, `✕ ${error}`))),
    stage.details?.length > 0 && el("dl", {}, stage.details.map(detail)),
    objects(stage));
}

function detail({ name, value }) {
  const isBytes = name === "first bytes";
  const isTrace = ["trace", "watch"].includes(name) && value.includes("-");
  return [el("dt", {}, name), el("dd", {},
    isBytes ? [el("pre", { class: "hex" }, hexDump(value)), el("span", { class: "hint" }, t("bytesShown"))]
      : isTrace ? el("a", { href: `#${new URLSearchParams({ trace: value })}` }, value) : value)];
}

/** hexDump shows bytes as a table: place, hexadecimal, text. */
function hexDump(hex) {
  const bytes = hex.match(/../g) ?? [];
  const rows = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.slice(at, at + 16);
    const text = row.map((byte) => parseInt(byte, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : "·")).join("");
    rows.push(`${at.toString(16).padStart(4, "0")}  ${row.join(" ").padEnd(47)}  ${text}`);
  }
  return rows.join("\n");
}

function objects({ before, after }) {
  const yaml = { before: before && toYAML(before), after: after && toYAML(after) };
  if (!yaml.before && !yaml.after) return "";
  if (!yaml.before || !yaml.after) {
    const [key, text] = yaml.after ? ["after", yaml.after] : ["before", yaml.before];
    return el("div", {}, el("h4", {}, `${t("object")} (${t(key)})`), el("pre", { class: "yaml", tabindex: "0" }, text));
  }
  return el("div", {},
    el("h4", {}, t("whatChanged"), el("span", { class: "hint" }, ` − ${t("before")}  + ${t("after")}`)),
    el("pre", { class: "diff", tabindex: "0" }, diffLines(yaml.before, yaml.after).map(({ mark, text }) =>
      el("span", { class: { "+": "added", "-": "removed", " ": "same" }[mark] }, `${mark === "-" ? "−" : mark} ${text}\n`))),
    el("details", {}, el("summary", {}, t("fullObject")), copyButton(() => yaml.after), el("pre", { class: "yaml", tabindex: "0" }, yaml.after)));
}
