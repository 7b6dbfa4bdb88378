package page

import (
	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
)

// stage is what there is to know about a stage that is the same for each
// request.
type stage struct {
	Name pipelinev1alpha1.StageName `json:"name"`
	// Group is the column or row of the drawing.
	Group     group      `json:"group"`
	Title     text       `json:"title"`
	Purpose   text       `json:"purpose"` // two sentences
	Functions []function `json:"functions"`
}

type group string

const (
	filters    group = "filters"
	mux        group = "mux"
	handler    group = "handler"
	admission  group = "admission"
	registry   group = "registry"
	storage    group = "storage"
	answers    group = "answer"
	watches    group = "watches"
	controller group = "controller"
)

// text is in both languages of the page.
type text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// function is where a stage is done. A method is called TYPE.METHOD.
type function struct {
	Package string `json:"package"`
	Name    string `json:"name"`
}

const (
	apiserver = "k8s.io/apiserver/pkg/"
	clientGo  = "k8s.io/client-go/"
	own       = "github.com/samplecrd/network-apiserver/pkg/"
)

// stages are all that there are, in the order of the drawing.
var stages = []stage{
	{
		pipelinev1alpha1.StageAuthentication, filters,
		text{"Authentication", "认证"},
		text{
			"Finds out who asks, from a client certificate, a token or the headers of a front proxy. Who is not recognized is answered with 401 here, or goes on as anonymous.",
			"从客户端证书、令牌或前端代理的请求头得知是谁在请求。认不出的请求在这里得到 401，或者以匿名用户继续。",
		},
		[]function{{apiserver + "endpoints/filters", "WithAuthentication"}},
	},
	{
		pipelinev1alpha1.StageAudit, filters,
		text{"Audit", "审计"},
		text{
			"Gives the request to the audit log, as far as the audit policy asks for it. The audit ID that names this trace is the one in the log and in the response.",
			"按审计策略把请求写入审计日志。给这条记录命名的审计 ID，与日志和响应中的相同。",
		},
		[]function{{apiserver + "endpoints/filters", "WithAudit"}},
	},
	{
		pipelinev1alpha1.StageImpersonation, filters,
		text{"Impersonation", "身份扮演"},
		text{
			"Lets one user ask in the name of another, as kubectl --as does. The one who asks needs the right to impersonate; from here on the other one counts.",
			"允许一个用户以另一个用户的名义请求，例如 kubectl --as。请求者必须有 impersonate 权限；此后以被扮演的用户为准。",
		},
		[]function{{apiserver + "endpoints/filters/impersonation", "WithConstrainedImpersonation"}},
	},
	{
		pipelinev1alpha1.StagePriorityAndFairness, filters,
		text{"Priority and fairness", "优先级与公平性"},
		text{
			"Makes a request wait for its turn when the server is busy, so that one client can't take all of it. Where too many wait already, the answer is 429.",
			"服务器繁忙时让请求排队，避免一个客户端占满服务器。排队的请求过多时返回 429。",
		},
		[]function{{apiserver + "server/filters", "WithPriorityAndFairness"}},
	},
	{
		pipelinev1alpha1.StageAuthorization, filters,
		text{"Authorization", "鉴权"},
		text{
			"Asks whether this user may do this verb to this resource, by RBAC as a rule. The body has not been read yet: only what the URL tells can count.",
			"询问该用户能否对该资源执行该动作，通常由 RBAC 决定。此时还没有读取请求体，只能依据 URL 判断。",
		},
		[]function{{apiserver + "endpoints/filters", "WithAuthorization"}},
	},
	{
		pipelinev1alpha1.StageMux, mux,
		text{"Mux", "路由"},
		text{
			"Finds the handler that was installed for this path and method. Each version and resource has its own: POST of v1 is another handler than POST of v2alpha1.",
			"按路径和方法找到已注册的处理函数。每个版本、每种资源都有自己的处理函数：v1 的 POST 与 v2alpha1 的 POST 不是同一个。",
		},
		[]function{{"github.com/emicklei/go-restful/v3", "CurlyRouter.SelectRoute"}},
	},
	{
		pipelinev1alpha1.StageDecode, handler,
		text{"Decode", "解码"},
		text{
			"Makes a Go object of the bytes of the body, in the version that the client sent. Unknown fields are found here, and are an error or a warning if the client asks for it.",
			"把请求体的字节变成客户端所用版本的 Go 对象。未知字段在这里被发现，按客户端的要求报错或警告。",
		},
		[]function{
			{apiserver + "endpoints/handlers", "CreateResource"},
			{apiserver + "endpoints/handlers", "UpdateResource"},
			{"k8s.io/apimachinery/pkg/runtime/serializer/json", "Serializer.Decode"},
		},
	},
	{
		pipelinev1alpha1.StageDefaulting, handler,
		text{"Defaulting", "填充默认值"},
		text{
			"Fills in what the user left out, so that what is stored says all of what is meant. Each version has its own defaults, and they are applied before the conversion.",
			"补上用户没有写的字段，让存下来的对象完整地表达意图。每个版本有自己的默认值，在转换之前填充。",
		},
		[]function{
			{own + "apis/samplecrd/v1", "SetDefaults_NetworkSpec"},
			{own + "apis/samplecrd/v2alpha1", "SetDefaults_NetworkSpec"},
		},
	},
	{
		pipelinev1alpha1.StageConversionToHub, handler,
		text{"Conversion to the hub", "转换为超级版本"},
		text{
			"Makes the hub, the \"super version\", of the version that was sent: a type that has the fields of all versions. All that follows is written once, for the hub, and not once for each version.",
			"把客户端所用的版本转换为内部的 hub，即“超级版本”（super version）：它含有所有版本的字段。之后的处理只需为它写一次，不必为每个版本各写一次。",
		},
		[]function{{own + "apis/samplecrd/v1", "Convert_v1_NetworkSpec_To_samplecrd_NetworkSpec"}},
	},
	{
		pipelinev1alpha1.StageMerge, admission,
		text{"Merge", "合并"},
		text{
			"Joins a patch, an apply or an update with the object that is stored. It is done again from the start if somebody else wrote in the meantime.",
			"把 patch、apply 或 update 与已存储的对象合并。如果期间有别人写入，就从头重做。",
		},
		[]function{
			{apiserver + "endpoints/handlers", "patcher.applyPatch"},
			{apiserver + "storage/etcd3", "store.updateState"},
		},
	},
	{
		pipelinev1alpha1.StageMutatingAdmission, admission,
		text{"Mutating admission", "变更准入"},
		text{
			"Each plugin may change the object, one after the other. It works on the hub, before the strategy and before validation, so that what a plugin changes is judged too.",
			"各插件依次可以修改对象。它作用于超级版本，在 strategy 和校验之前，因此插件的修改也会被校验。",
		},
		[]function{
			{apiserver + "admission", "chainAdmissionHandler.Admit"},
			{own + "apiserver/admission/defaultcredentials", "plugin.Admit"},
		},
	},
	{
		pipelinev1alpha1.StageStrategy, registry,
		text{"Strategy", "Strategy 策略"},
		text{
			"Sets what a user can't: the uid, the generation, the finalizer, and the status as it was. It is what makes this kind differ from others in the same generic registry.",
			"设置用户不能设置的内容：uid、generation、finalizer，并保持 status 不变。在同一个通用注册表（registry）中，正是它让这种资源与众不同。",
		},
		[]function{
			{own + "registry/network", "strategy.PrepareForCreate"},
			{own + "registry/network", "strategy.PrepareForUpdate"},
			{apiserver + "registry/rest", "BeforeCreate"},
			{apiserver + "registry/rest", "BeforeUpdate"},
		},
	},
	{
		pipelinev1alpha1.StageValidation, registry,
		text{"Validation", "校验"},
		text{
			"Judges the object by itself, and on an update beside the old one. All errors are told at once, each with the field as the user wrote it.",
			"只凭对象本身作出判断，更新时还会与旧对象比较。所有错误一次报告，并指出用户所写的字段。",
		},
		[]function{
			{own + "apis/samplecrd/validation", "ValidateNetwork"},
			{own + "apis/samplecrd/validation", "ValidateNetworkUpdate"},
		},
	},
	{
		pipelinev1alpha1.StageValidatingAdmission, registry,
		text{"Validating admission", "校验准入"},
		text{
			"Each plugin may refuse the object, and none may change it. Rules that need other objects or rights stand here; the registry calls them just before it stores.",
			"各插件可以拒绝对象，但不能修改。需要其他对象或权限的规则放在这里；注册表在存储之前调用它们。",
		},
		[]function{
			{apiserver + "admission", "chainAdmissionHandler.Validate"},
			{own + "apiserver/admission/cidrpolicy", "plugin.Validate"},
			{own + "apiserver/admission/privilegedfields", "plugin.Validate"},
		},
	},
	{
		pipelinev1alpha1.StageStorageEncoding, storage,
		text{"Storage encoding", "存储编码"},
		text{
			"Converts the hub to the one version that is stored, and makes bytes of it. Every client reads the same bytes, whatever version it wrote.",
			"把超级版本转换为唯一的存储版本，再编码为字节。无论客户端用哪个版本写入，存的都是同样的字节。",
		},
		[]function{
			{own + "apis/samplecrd/v1", "Convert_samplecrd_NetworkSpec_To_v1_NetworkSpec"},
			{"k8s.io/apimachinery/pkg/runtime/serializer/protobuf", "Serializer.Encode"},
		},
	},
	{
		pipelinev1alpha1.StageEtcd, storage,
		text{"etcd", "etcd"},
		text{
			"Reads or writes one key, in a transaction that fails if the key has changed since it was read. The revision of the write becomes the resourceVersion of the object.",
			"读或写一个键；若该键在读取后被改动，事务就会失败。写入的 revision 成为对象的 resourceVersion。",
		},
		[]function{
			{apiserver + "storage/etcd3", "store.Create"},
			{apiserver + "storage/etcd3", "store.GuaranteedUpdate"},
			{apiserver + "storage/etcd3", "store.Get"},
		},
	},
	{
		pipelinev1alpha1.StageWatchCache, answers,
		text{"Watch cache", "监视缓存"},
		text{
			"Answers reads out of memory, and hands one watch of etcd on to any number of clients. It is as new as the client asks for: it waits until it has heard of that revision.",
			"用内存回答读请求，并把对 etcd 的一个 watch 分发给任意多的客户端。它与客户端要求的一样新：会等到听说那个 revision 为止。",
		},
		[]function{
			{apiserver + "storage/cacher", "Cacher.GetList"},
			{apiserver + "storage/cacher", "Cacher.Watch"},
		},
	},
	{
		pipelinev1alpha1.StageConversionFromHub, answers,
		text{"Conversion from the hub", "从超级版本转换"},
		text{
			"Makes the version that the client asked for of the hub. So an object that was written as v1 can be read as v2alpha1, and the other way round.",
			"把超级版本转换为客户端请求的版本。因此以 v1 写入的对象可以用 v2alpha1 读取，反之亦然。",
		},
		[]function{
			{apiserver + "endpoints/handlers", "transformResponseObject"},
			{own + "apis/samplecrd/v1", "Convert_samplecrd_NetworkSpec_To_v1_NetworkSpec"},
		},
	},
	{
		pipelinev1alpha1.StageEncoding, answers,
		text{"Encoding", "编码响应"},
		text{
			"Makes the bytes of the answer, in the media type that the client prefers. Errors come by here too: they are objects of the kind Status.",
			"按客户端偏好的媒体类型生成响应的字节。错误也会经过这里：它们是 Status 类型的对象。",
		},
		[]function{{apiserver + "endpoints/handlers/responsewriters", "SerializeObject"}},
	},
	{
		pipelinev1alpha1.StageWatch, watches,
		text{"Watches", "Watch 事件"},
		text{
			"Hands the new state to each open watch, the controller's among them. Nobody calls the controller: it hears of a write as any client can.",
			"把新状态交给每个打开的 watch，其中包括控制器的。没有人调用控制器：它和任何客户端一样得知写入。",
		},
		[]function{
			{apiserver + "storage/cacher", "Cacher.dispatchEvent"},
			{apiserver + "endpoints/handlers", "WatchServer.HandleHTTP"},
		},
	},
	{
		pipelinev1alpha1.StageInformer, controller,
		text{"Informer", "Informer"},
		text{
			"The Reflector reads the watch, a FIFO keeps the changes in order, and the Indexer keeps the latest state of each Network. The DeltaFIFO of older drawings is a RealFIFO in this client-go.",
			"Reflector 读取 watch，FIFO 按顺序保存变化，Indexer 保存每个 Network 的最新状态。旧图中的 DeltaFIFO 在这个版本的 client-go 中是 RealFIFO。",
		},
		[]function{
			{clientGo + "tools/cache", "Reflector.ListAndWatchWithContext"},
			{clientGo + "tools/cache", "RealFIFO.Add"},
			{clientGo + "tools/cache", "threadSafeMap.Update"},
			{own + "controller/network", "Controller.enqueue"},
		},
	},
	{
		pipelinev1alpha1.StageQueue, controller,
		text{"Work queue", "工作队列"},
		text{
			"Keeps the name of the Network, and only the name, until a worker is free. Many changes of one Network are one entry, and no two workers ever have the same one.",
			"保存 Network 的名字（只有名字），直到有空闲的 worker。同一个 Network 的多次变化只占一项，也不会有两个 worker 同时处理它。",
		},
		[]function{
			{clientGo + "util/workqueue", "Typed.Get"},
			{own + "controller/network", "Controller.processNext"},
		},
	},
	{
		pipelinev1alpha1.StageObserve, controller,
		text{"Observe", "观察"},
		text{
			"Looks at what is there in Neutron, by the ID in status or by the mark of its owner. It remembers nothing from the last time: what is there is what counts.",
			"查看 Neutron 中实际有什么：按 status 中的 ID，或按所有者标记。它不依赖上一次的记忆，只看实际状态。",
		},
		[]function{{own + "controller/network", "pass.find"}},
	},
	{
		pipelinev1alpha1.StagePlan, controller,
		text{"Plan", "计划"},
		text{
			"Compares what is wanted with what is there, and lists what is missing. The first step of the list is done, and then it plans again.",
			"比较期望状态与实际状态，列出缺少的操作。执行其中第一步，然后重新计划。",
		},
		[]function{{own + "controller/network", "plan"}},
	},
	{
		pipelinev1alpha1.StageNeutron, controller,
		text{"Neutron calls", "调用 Neutron"},
		text{
			"One call to OpenStack after the other, over HTTP. If the controller dies between two of them, the next pass goes on from what is there.",
			"通过 HTTP 依次调用 OpenStack。如果控制器在两次调用之间崩溃，下一轮会从实际状态继续。",
		},
		[]function{
			{own + "controller/network", "pass.do"},
			{own + "neutron", "Client.CreateNetwork"},
			{own + "neutron", "Client.CreateSubnet"},
		},
	},
	{
		pipelinev1alpha1.StageStatus, controller,
		text{"Status", "写入状态"},
		text{
			"Writes down how far it came, and takes the finalizer off when all is gone: requests to the API server like any other. Each has a trace of its own, and goes all the way that is drawn above.",
			"把进展写入 status，并在全部删除后移除 finalizer：这些都是对 API server 的普通请求。每次写入有自己的记录，也走过上面所画的整条路。",
		},
		[]function{
			{own + "controller/network", "pass.putStatus"},
			{own + "controller/network", "pass.removeFinalizer"},
			{own + "registry/network", "statusStrategy.PrepareForUpdate"},
		},
	},
}
