// All words of the page, one entry a line: English, then Chinese. Those of the
// stages come from the server, those of the lessons stand there.

export const texts = {
  title: ["API pipeline", "API 流水线"],
  subtitle: ["what your request goes through", "看你的请求走过哪些路"],
  language: ["Language", "语言"],
  tabRequests: ["Requests", "请求"],
  tabSend: ["Try it", "动手试试"],
  tabLessons: ["Lessons", "课程"],
  live: ["live", "实时"],
  connecting: ["connecting…", "正在连接…"],
  lost: ["No connection, trying again. After a restart open the new address that the server prints.", "连接已断开，正在重试。服务器重启后，请打开它新打印的地址。"],
  lostNotFound: ["The server serves no traces: it must run with --pipeline-traces.", "服务器没有提供记录：启动时需要 --pipeline-traces。"],
  lostForbidden: ["You may not list and watch RequestTraces.", "你没有列出和监视 RequestTrace 的权限。"],
  filterUser: ["User", "用户"],
  filterVerb: ["Verb", "动作"],
  filterObject: ["Object", "对象"],
  anyVerb: ["any", "全部"],
  showController: ["controller's reads", "控制器的读请求"],
  pause: ["Pause", "暂停"],
  resume: ["Go on ({0})", "继续（{0}）"],
  follow: ["open new writes", "自动打开新的写请求"],
  requests: ["Requests, the newest first", "请求列表，最新的在前"],
  noRequests: ["No request yet.", "还没有请求。"],
  noMatch: ["No request is like that.", "没有符合条件的请求。"],
  more: ["{0} older ones are not shown", "另有 {0} 条较早的请求未显示"],
  arrived: ["New request: {0}", "新请求：{0}"],
  dryRun: ["dry run", "试运行"],
  stoppedAt: ["stopped at {0}", "止于 {0}"],
  loopRuns: ["loop runs", "循环进行中"],
  anonymous: ["nobody known", "未识别的用户"],
  welcome: ["Send a request, and it appears here", "发送一个请求，它就会出现在这里"],
  welcomeHow: ["Use kubectl in a terminal, or “Try it” on this page. The drawing shows all stages there are; those your request comes by light up.", "在终端中使用 kubectl，或在本页“动手试试”。图中画出了全部阶段，你的请求经过的会被点亮。"],
  traceMissing: ["There is no such trace: it is gone, or another replica has it.", "没有这条记录：它已被清除，或在另一个副本上。"],
  by: ["by {0}", "用户 {0}"],
  impersonatedBy: ["impersonated by {0}", "由 {0} 扮演"],
  took: ["in {0}", "用时 {0}"],
  onReplica: ["on {0}", "副本 {0}"],
  stopped: ["Stopped at {0}", "止于 {0}"],
  warning: ["Warning", "警告"],
  causeOf: ["The controller's loop sent this, because of another request:", "这是控制循环发出的请求，起因是另一个请求："],
  openCause: ["show it", "查看"],
  copyLink: ["Copy link", "复制链接"],
  copy: ["Copy", "复制"],
  copied: ["Copied", "已复制"],
  wayIn: ["The way in", "进入"],
  wayBack: ["The way back", "返回"],
  groupFilters: ["Filters", "过滤器 Filters"],
  groupMux: ["Mux", "路由 Mux"],
  groupHandler: ["To the super version", "转换为超级版本"],
  groupAdmission: ["Admission", "准入 Admission"],
  groupRegistry: ["Registry", "注册表 Registry"],
  groupStorage: ["Storage", "存储"],
  answer: ["Answer", "响应"],
  loop: ["The controller's loop", "控制循环"],
  pass: ["Pass {0}", "第 {0} 轮"],
  passesDropped: ["{0} passes are not kept", "有 {0} 轮未保留"],
  passGoesOn: ["goes on", "进行中"],
  settled: ["nothing more to do by itself", "不会再自行处理"],
  notSettled: ["comes again by itself", "会自动重试"],
  loopAgain: ["After each step it observes and plans again, until there is nothing to do.", "每一步之后都会重新观察和计划，直到无事可做。"],
  loopRead: ["A read changes nothing, so the controller hears nothing of it.", "读请求不改变任何东西，控制器不会知道它。"],
  loopDryRun: ["A dry run is not written, so the controller hears nothing of it.", "试运行不会写入，控制器不会知道它。"],
  loopStopped: ["Nothing was written, so the controller hears nothing of it.", "没有写入任何东西，控制器不会知道它。"],
  loopOwn: ["What the controller writes itself starts no new pass.", "控制器自己的写入不会引起新的一轮。"],
  loopWaits: ["The controller has nothing to do about it, or has not come to it yet.", "控制器不需要为它做什么，或者还没有轮到它。"],
  waited: ["waited", "等待"],
  openTrace: ["its trace", "它的记录"],
  timeline: ["Where the time went", "时间花在哪里"],
  timelineNote: ["Stages without a bar have no clock: they are done again to show them.", "没有时间条的阶段没有计时：它们是为展示而重做的。"],
  legendPassed: ["passed", "通过"],
  legendChanged: ["changed the object", "修改了对象"],
  legendRefused: ["refused", "拒绝"],
  legendFailed: ["failed", "失败"],
  legendUnseen: ["not seen", "未观察到"],
  legendAbsent: ["did not come by", "没有经过"],
  replayed: ["done again to show it", "为展示而重做"],
  close: ["Close", "关闭"],
  whereDone: ["Where it is done", "在哪里实现"],
  absentStage: ["This request did not come by here.", "这个请求没有经过这里。"],
  errors: ["Errors", "错误"],
  object: ["Object", "对象"],
  whatChanged: ["What changed", "改动"],
  fullObject: ["The whole object after it", "之后的完整对象"],
  before: ["before", "之前"],
  after: ["after", "之后"],
  bytesShown: ["The first bytes, as they are in etcd. “k8s” and a zero mark protobuf.", "etcd 中的前若干字节。以 “k8s” 加零字节开头表示 protobuf。"],
  omitted: ["No objects are kept of this request: {0}", "这个请求没有保留对象：{0}"],
  sendIntro: ["Write a Network and send it as a dry run: it goes all the way but into etcd, and nothing is kept of it.", "写一个 Network，以试运行方式发送：它走完全程，只是不写入 etcd。"],
  sendBody: ["Network as YAML or JSON", "YAML 或 JSON 格式的 Network"],
  sendVerb: ["Send it as", "发送方式"],
  verbCreate: ["create (POST)", "创建 create（POST）"],
  verbUpdate: ["update (PUT)", "更新 update（PUT）"],
  verbApply: ["server-side apply (PATCH)", "服务端应用 apply（PATCH）"],
  send: ["Send as a dry run", "试运行"],
  sending: ["Sending…", "正在发送…"],
  sentAnswer: ["Answer {0}", "响应 {0}"],
  noTrace: ["Answered, but no trace came: another replica may have it, or nothing is recorded.", "已得到响应，但没有收到记录：可能在另一个副本上，或没有开启记录。"],
  lessonDone: ["done", "已完成"],
  lessonOpen: ["not yet", "尚未完成"],
  lessonLook: ["Look at", "看这里"],
  lessonDraft: ["Put it into the editor", "放入编辑器"],
  realThing: ["For the real thing, in a terminal:", "若要真正执行，请在终端运行："],
};

let language = localStorage.getItem("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");

/** currentLanguage is en or zh. */
export const currentLanguage = () => language;

/** setLanguage changes it for what is drawn from now on. */
export function setLanguage(next) {
  language = next;
  localStorage.setItem("language", next);
}

/** t is the text of a key, with values for {0}, {1}… */
export function t(key, ...values) {
  return texts[key][language === "zh" ? 1 : 0].replace(/\{(\d)\}/g, (_, i) => values[i]);
}

/** pick is the language's half of {en, zh}. */
export const pick = (text) => text[language];
