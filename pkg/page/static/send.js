// The editor: a Network that is sent as a dry run.

import { el } from "./dom.js";
import { copyButton } from "./stage.js";
import { t } from "./text.js";

// The course's own.
const example = `apiVersion: samplecrd.k8s.io/v1
kind: Network
metadata:
  name: example-network
spec:
  cidr: "192.168.0.0/16"
  gateway: "192.168.0.1"
`;

// How long the trace of an answered request may take to come.
const patience = 5000;

/** Editor keeps what is written in it. */
export class Editor {
  constructor(stream, open) {
    this.stream = stream;
    this.open = open;
    this.text = example;
    this.verb = "create";
    this.element = el("section", { class: "editor", role: "tabpanel" });
    this.draw();
  }

  draw() {
    this.result = el("p", { class: "result", role: "status" });
    this.command = el("pre", { class: "command", tabindex: "0" });
    this.button = el("button", { type: "button", class: "primary", onclick: () => this.send() }, t("send"));
    const area = el("textarea", {
      "aria-label": t("sendBody"), rows: "11", spellcheck: "false", autocapitalize: "off", maxlength: 64 * 1024,
      oninput: () => {
        this.text = area.value;
        this.refresh();
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send();
      },
    });
    area.value = this.text;
    const verbs = { create: "verbCreate", update: "verbUpdate", apply: "verbApply" };
    this.element.replaceChildren(
      el("p", { class: "intro" }, t("sendIntro")), area,
      el("div", { class: "controls" },
        el("label", {}, el("span", {}, t("sendVerb")), el("select", {
          onchange: (event) => {
            this.verb = event.target.value;
            this.refresh();
          },
        }, Object.entries(verbs).map(([verb, key]) => el("option", { value: verb, selected: verb === this.verb }, t(key))))),
        this.button),
      this.result,
      el("div", { class: "real" }, el("span", {}, t("realThing")), copyButton(() => this.kubectl())), this.command);
    this.refresh();
  }

  /** write puts a Network there, for who wants to show one. */
  write(text, verb = "create") {
    this.text = text;
    this.verb = verb;
    this.draw();
  }

  refresh() {
    this.command.textContent = this.kubectl();
  }

  kubectl() {
    const verb = { create: "create", update: "replace", apply: "apply --server-side" }[this.verb];
    let end = "EOF";
    while (this.text.split("\n").includes(end)) end += "_";
    return `kubectl ${verb} -f - <<'${end}'\n${this.text.replace(/\n*$/, "\n")}${end}\n`;
  }

  async send() {
    this.button.disabled = true;
    this.result.textContent = t("sending");
    this.result.className = "result";
    try {
      const isJSON = this.text.trimStart().startsWith("{");
      const response = await fetch(`dryrun?verb=${this.verb}`, {
        method: "POST", body: this.text, headers: { "Content-Type": isJSON ? "application/json" : "application/yaml" },
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.message);
      const isRefused = answer.code >= 400;
      this.result.textContent = `${isRefused ? "✕" : "✓"} ${t("sentAnswer", answer.code)} ${answer.message ?? ""}`;
      this.result.classList.add(isRefused ? "refused" : "passed");
      await this.stream.arrival(answer.trace, patience); // of another replica nothing arrives
      if (await this.stream.trace(answer.trace)) this.open(answer.trace);
      else this.result.append(` ${t("noTrace")}`);
    } catch (error) {
      this.result.textContent = `✕ ${error.message}`;
      this.result.classList.add("refused");
    } finally {
      this.button.disabled = false;
    }
  }
}
