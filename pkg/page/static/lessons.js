// The lessons. Each is {title, text, commands, looks, isAbout, find}: isAbout tells
// by a summary which requests count, and find picks, of their whole traces, the
// oldest first, those that show what the lesson is about, or nothing. Both only
// read what they are given. A look is a stage, a text, and which of the traces
// found it is in, if that is not the first.

import { Lesson, Note } from "./lesson.js";
import { stagesAt } from "./pipeline.js";

const manifest = (name, ...spec) => `apiVersion: samplecrd.k8s.io/v1
kind: Network
metadata:
  name: ${name}
spec:
${spec.map((line) => `  ${line}\n`).join("")}`;

const kubectl = (how, object) => `kubectl ${how} -f - <<'EOF'\n${object}EOF`;

const isDone = (summary, verb, code) => summary.verb === verb && summary.code === code && !summary.subresource && !summary.cause;
const isRefused = (summary, stage, code) => summary.stoppedAt === stage && summary.code === code && !summary.cause;
const first = (traces, isIt) => traces.filter(isIt).slice(0, 1);
const detail = (stage, name) => stage.details?.find((one) => one.name === name)?.value;
const fails = (pass) => pass.result?.startsWith("QuotaExceeded: ");

const mistakes = manifest("three-mistakes", "cidr: 10.2.0.0/33", "gateway: not-an-address", "mtu: 10");
const elsewhere = manifest("elsewhere", "cidr: 172.16.0.0/24");
const tried = manifest("only-tried", "cidr: 10.7.0.0/24");
const hostBits = manifest("host-bits", "cidr: 192.168.1.5/16");

const table = [
  {
    title: { en: "Created", zh: "创建成功" },
    text: {
      en: "A create goes all the way: it is filled in, converted, checked and stored, and only then does the controller hear of it and make the network in Neutron. kubectl has its answer before that.",
      zh: "一次创建走完全程：填充默认值、转换、校验、写入 etcd；此后控制器才得知它，并在 Neutron 中建立网络。kubectl 在此之前就已得到响应。",
    },
    commands: [kubectl("create", manifest("first", "cidr: 10.1.0.0/24"))],
    looks: [
      ["Defaulting", { en: "what you left out", zh: "你没有写的字段" }],
      ["Strategy", { en: "who added the finalizer", zh: "finalizer 是谁加的" }],
      ["Etcd", { en: "under which key it is stored", zh: "存储在哪个键下" }],
      ["1.Neutron", { en: "the calls to Neutron it caused", zh: "它引起的 Neutron 调用" }],
    ],
    isAbout: (summary) => isDone(summary, "create", 201) && !summary.dryRun && summary.settled,
    find: (traces) => first(traces, (trace) => trace.passes.some((pass) => pass.result === "Success")),
  },
  {
    title: { en: "Refused by validation", zh: "被校验拒绝" },
    text: {
      en: "Three fields are wrong, and all three are told at once, each by the name you wrote. What comes after validation stays faint: nothing was stored, and the controller knows nothing.",
      zh: "三个字段有错，会一次全部报告，并使用你所写的字段名。校验之后的阶段都是灰的：什么也没有存储，控制器一无所知。",
    },
    commands: [kubectl("create", mistakes)],
    draft: mistakes,
    looks: [["Validation", { en: "the three errors", zh: "三个错误" }]],
    isAbout: (summary) => isRefused(summary, "Validation", 422),
    find: (traces) => first(traces, (trace) => stagesAt(trace, "Validation").some((stage) => stage.errors?.length === 3)),
  },
  {
    title: { en: "Refused by authorization", zh: "被鉴权拒绝" },
    text: {
      en: "You ask in the name of bob. You may impersonate, but bob may do nothing here. The server has not read a body yet, and no Network: who may not look is not told what there is.",
      zh: "你以 bob 的名义请求。你有身份扮演的权限，但 bob 在这里什么也不能做。此时服务器还没有读取请求体，也没有读取任何 Network：无权查看的人，不会得知有什么。",
    },
    commands: ["kubectl get networks\nkubectl get networks --as=bob"],
    looks: [
      ["Impersonation", { en: "you may be bob", zh: "你可以扮演 bob" }],
      ["Authorization", { en: "bob may not list", zh: "bob 不能 list" }],
    ],
    isAbout: (summary) => isRefused(summary, "Authorization", 403),
    find: (traces) => first(traces, (trace) => trace.user?.impersonatedBy),
  },
  {
    title: { en: "Refused by an admission plugin", zh: "被准入插件拒绝" },
    text: {
      en: "The object is valid by itself, so validation lets it pass. The plugin CIDRPolicy refuses it by the operator's rules: only 10.0.0.0/8, 192.168.0.0/16 and fd00::/8 are allowed. It needs the policy with which the server was started above.",
      zh: "对象本身是有效的，校验予以通过。准入插件 CIDRPolicy 按管理员的规则拒绝它：只允许 10.0.0.0/8、192.168.0.0/16 和 fd00::/8。服务器必须像上面那样带着策略启动。",
    },
    commands: [kubectl("create", elsewhere)],
    draft: elsewhere,
    looks: [
      ["Validation", { en: "nothing against it", zh: "没有异议" }],
      ["ValidatingAdmission", { en: "which rule it breaks", zh: "违反了哪条规则" }],
    ],
    isAbout: (summary) => isRefused(summary, "ValidatingAdmission", 403),
    find: (traces) => first(traces, (trace) => stagesAt(trace, "ValidatingAdmission").some((stage) => stage.subject === "CIDRPolicy" && stage.outcome === "Refused")),
  },
  {
    title: { en: "Two writers", zh: "两个写者冲突" },
    text: {
      en: "You read an object, somebody writes it, and you send back what you had read. Its resourceVersion is stale, so your update is refused with 409 and the other's work is not lost. Read again, and change that.",
      zh: "你读取了对象，别人随后写入，而你送回的是先前读到的内容。它的 resourceVersion 已过时，所以更新被 409 拒绝，别人的改动不会丢失。应当重新读取，再作修改。",
    },
    commands: [`${kubectl("create", manifest("two-writers", "cidr: 10.5.0.0/24"))}
stale=$(kubectl get network two-writers -o yaml)
kubectl annotate network two-writers note=another
echo "$stale" | kubectl replace -f -`],
    looks: [
      ["Merge", { en: "where it is noticed", zh: "在哪里被发现" }],
      ["Etcd", { en: "it is only read", zh: "只有读取" }],
    ],
    isAbout: (summary) => isDone(summary, "update", 409),
    find: (traces) => first(traces, (trace) => trace.response.reason === "Conflict"),
  },
  {
    title: { en: "Two owners of a field", zh: "字段归属冲突" },
    text: {
      en: "With server-side apply, the server knows who set which field. alice owns spec.mtu, so bob's other value is refused, although nothing is stale. Add --force-conflicts to take the field over.",
      zh: "使用服务端应用（server-side apply）时，服务器知道每个字段由谁设置。spec.mtu 归 alice，因此 bob 的不同取值被拒绝，尽管没有任何内容过时。加上 --force-conflicts 即可接管该字段。",
    },
    commands: [["alice", 1400], ["bob", 1300]].map(([manager, mtu]) =>
      kubectl(`apply --server-side --field-manager=${manager}`, manifest("two-owners", "cidr: 10.6.0.0/24", `mtu: ${mtu}`))),
    looks: [["Merge", { en: "whose field it is", zh: "字段归谁" }]],
    isAbout: (summary) => isDone(summary, "apply", 409),
    find: (traces) => first(traces, (trace) => trace.response.stoppedAt === "Merge"),
  },
  {
    title: { en: "Dry run", zh: "试运行" },
    text: {
      en: "A dry run goes all the way but into etcd: it is filled in, checked and answered as if it were stored. There is no write, no event and no pass of the controller.",
      zh: "试运行走完全程，只是不写入 etcd：照样填充默认值、校验，并像已存储一样响应。没有写入，没有事件，控制循环也不会运行。",
    },
    commands: [kubectl("create --dry-run=server -o yaml", tried)],
    draft: tried,
    looks: [
      ["Strategy", { en: "it gets a uid and a finalizer", zh: "得到 uid 和 finalizer" }],
      ["Etcd", { en: "nothing was written", zh: "没有写入" }],
    ],
    isAbout: (summary) => isDone(summary, "create", 201) && summary.dryRun,
    find: (traces) => first(traces, (trace) => !stagesAt(trace, "Etcd").some((stage) => stage.subject === "KV/Txn")),
  },
  {
    title: { en: "A warning", zh: "警告" },
    text: {
      en: "192.168.1.5/16 names a host, not a subnet. It is taken as 192.168.0.0/16, as Neutron would, and you are told in a header of the answer: a Warning stops nothing.",
      zh: "192.168.1.5/16 表示一台主机，而不是子网。它按 192.168.0.0/16 处理，与 Neutron 一致，并通过响应头告知你：Warning 不会阻止任何请求。",
    },
    commands: [kubectl("create", hostBits)],
    draft: hostBits,
    looks: [
      ["Validation", { en: "it passed", zh: "校验通过" }],
      ["1.Plan", { en: "which subnet is made", zh: "建立哪个子网" }],
    ],
    isAbout: (summary) => summary.warnings > 0,
    find: (traces) => first(traces, (trace) => trace.response.warnings?.some((warning) => warning.includes("host bits"))),
  },
  {
    title: { en: "v1 in, v2alpha1 out", zh: "写入 v1，读出 v2alpha1" },
    text: {
      en: "One Network, two versions. It was written as v1, is stored once, and is converted through the super version to what a client asks for: spec.cidr becomes spec.subnets[0].cidr. Needs the Network of lesson 1.",
      zh: "同一个 Network，两个版本。它以 v1 写入，只存储一份，读取时经超级版本（super version）转换为客户端请求的版本：spec.cidr 变成 spec.subnets[0].cidr。需要第 1 课的 Network。",
    },
    commands: ["kubectl get networks.v2alpha1.samplecrd.k8s.io first -o yaml"],
    looks: [
      ["ConversionToHub", { en: "how v1 became the super version, when it was written", zh: "写入时 v1 如何变成超级版本" }, 1],
      ["Etcd", { en: "the same key is read", zh: "读取同一个键" }],
      ["ConversionFromHub", { en: "how v2alpha1 is made of it", zh: "如何由它得到 v2alpha1" }],
    ],
    isAbout: (summary) => (isDone(summary, "create", 201) && summary.version === "v1") || (isDone(summary, "get", 200) && summary.version === "v2alpha1"),
    find: (traces) => {
      const written = new Map(traces.filter(({ request }) => request.verb === "create").map((trace) => [trace.object?.uid, trace]));
      const read = traces.find(({ request, object }) => request.verb === "get" && written.has(object?.uid));
      return read ? [read, written.get(read.object.uid)] : [];
    },
  },
  {
    title: { en: "Deleted, with a finalizer", zh: "带 finalizer 的删除" },
    text: {
      en: "A delete only marks the object: the finalizer keeps it. The controller sees the mark, deletes the network in Neutron, and then takes the finalizer off by an update; that is what removes the key. Needs the Network of lesson 1.",
      zh: "删除只是给对象打上标记：finalizer 把它留住。控制循环看到标记，先删除 Neutron 中的网络，再用一次更新去掉 finalizer，这时键才真正消失。需要第 1 课的 Network。",
    },
    commands: ["kubectl wait --for=condition=Ready network/first\nkubectl delete network first"],
    looks: [
      ["Strategy", { en: "only a mark: deletionTimestamp", zh: "只是标记：deletionTimestamp" }],
      ["1.Neutron", { en: "first Neutron", zh: "先处理 Neutron" }],
      ["Merge", { en: "then the finalizer goes, by a request of the controller", zh: "然后控制器用一个请求去掉 finalizer" }, 1],
      ["Etcd", { en: "and with it the key", zh: "键也随之消失" }, 1],
    ],
    isAbout: (summary) => isDone(summary, "delete", 200) || (summary.cause && summary.verb === "update" && !summary.subresource),
    find: (traces) => {
      const deletion = traces.find(({ request, passes }) => request.verb === "delete" && passes?.some((pass) => pass.result === "deleted"));
      const release = deletion && traces.find((trace) => trace.cause === deletion.metadata.name);
      return release ? [deletion, release] : [];
    },
  },
  {
    title: { en: "The controller tries again", zh: "控制器重试" },
    text: {
      en: "The API server accepts a Network for which Neutron has no quota: whether the cloud can is not for the API to say. The pass fails, and the work queue brings the name again after half a minute, later less often. Lift the quota with the second command, and the next pass succeeds. The commands need NEUTRON, see above.",
      zh: "Neutron 已没有配额，API server 仍会接受这个 Network：云能否满足，不由 API 判断。这一轮控制循环失败，工作队列在半分钟后再次给出它的名字，以后间隔更长。用第二条命令解除配额限制，下一轮就会成功。命令需要变量 NEUTRON，见上文。",
    },
    commands: [
      `curl -sS -X PUT "$NEUTRON/v2.0/quotas/standalone" -d '{"quota": {"network": 0}}'\n${kubectl("create", manifest("over-quota", "cidr: 10.11.0.0/24"))}`,
      `curl -sS -X DELETE "$NEUTRON/v2.0/quotas/standalone"\nkubectl wait --for=condition=Ready network/over-quota --timeout=5m`,
    ],
    looks: [
      ["1.Neutron", { en: "Neutron refuses", zh: "Neutron 拒绝" }],
      ["1.Status", { en: "the reason is written down", zh: "原因写入 status" }],
      ["2.Informer", { en: "what began the next pass", zh: "下一轮从何开始" }],
    ],
    isAbout: (summary) => isDone(summary, "create", 201) && summary.passes > 1,
    find: (traces) => first(traces, ({ passes }) => passes.some(fails) && passes.at(-1).result === "Success"),
  },
  {
    title: { en: "A watch, with bookmarks", zh: "带书签的 watch" },
    text: {
      en: "A watch is one request that does not end: first what there is, then each change. A BOOKMARK carries no change, only a resourceVersion to go on from after a break. The controller's informer lives by such a watch.",
      zh: "watch 是一个不结束的请求：先给出现有对象，再给出每次变化。BOOKMARK（书签）不带变化，只带一个 resourceVersion，供断开后从那里继续。控制器的 Informer 就靠这样的 watch。",
    },
    commands: ["kubectl get --raw '/apis/samplecrd.k8s.io/v1/namespaces/default/networks?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3'"],
    looks: [
      ["WatchCache", { en: "it is answered out of memory", zh: "由内存响应" }],
      ["Watch", { en: "how many events of which kind", zh: "各类事件有多少" }],
    ],
    isAbout: (summary) => summary.verb === "watch" && summary.user !== "system:apiserver",
    // kubectl's own, to wait for one object, are not meant.
    find: (traces) => first(traces, (trace) => !trace.request.parameters?.some((one) => one.startsWith("fieldSelector=")) && stagesAt(trace, "Watch").some((stage) => detail(stage, "BOOKMARK"))),
  },
];

/** lessons are what stands in their tab, from top to bottom: {title, draw}. */
export const lessons = [
  new Note(
    { en: "Before you begin", zh: "开始之前" },
    {
      en: "Start the server with a policy and open the page at the address it prints, which is new after each start. Tell a second shell where the server is, with the port of Neutron that it printed too. Copy the commands there; each lesson sees by itself when it is done.",
      zh: "带着策略启动服务器，并打开它打印的页面地址（每次启动都会变）。再在第二个终端中告诉 kubectl 服务器在哪里，并填上它打印的 Neutron 端口。把各课的命令复制到那里运行；每一课完成后会自动标记。",
    },
    [
      'make run FLAGS="--admission-control-config-file artifacts/example/admission-configuration.yaml"',
      "export KUBECONFIG=$PWD/.data/kubeconfig PATH=$PWD/bin:$PATH\nexport NEUTRON=127.0.0.1:PORT",
    ],
  ),
  ...table.map((lesson, i) => new Lesson(i + 1, lesson)),
  new Note(
    { en: "Clean up", zh: "清理" },
    { en: "What the lessons made goes, in Neutron too.", zh: "删除课程中建立的内容，包括 Neutron 中的。" },
    ["kubectl delete network two-writers two-owners host-bits over-quota"],
  ),
];
