package main

// Nodes on paper: Node objects with a heartbeat and no machine, a thousand as cheaply as one, for tests of scale.
//
//	paper-nodes --kubeconfig FILE [--count 10] [--prefix paper-] [--cpu 64] [--memory 256Gi] [--gpus 0] [--labels a=b,c=d]
//
// A pod bound to one counts as running at once. What such a pod shall do is said by its annotations:
//
//	paper/seconds: "3"    it ends after that time
//	paper/exit: "1"       with this code (default 0)
//	paper/stuck: "true"   it never starts
//
// A deleted pod is gone at once. A Node with the annotation paper/silent gets no heartbeat and its pods are left as they are,
// as if the machine had lost its network. The objects stay when the program ends; their nodes then turn NotReady.

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const leases = "kube-node-lease"

type paper struct {
	api    kubernetes.Interface
	prefix string
	nodes  corelisters.NodeLister
	pods   corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

func keepPaperNodes() int {
	flags := flag.NewFlagSet("paper-nodes", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "file that names the cluster")
	count := flags.Int("count", 10, "how many nodes")
	prefix := flags.String("prefix", "paper-", "what their names begin with")
	cpu := flags.String("cpu", "64", "CPUs of each")
	memory := flags.String("memory", "256Gi", "memory of each")
	gpus := flags.String("gpus", "0", "nvidia.com/gpu of each")
	labels := flags.String("labels", "", "labels of each, a=b,c=d")
	every := flags.Duration("every", 10*time.Second, "time between two heartbeats of a node")
	workers := flags.Int("workers", 32, "requests at the same time")
	flags.Parse(os.Args[1:])

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1 // no limit of our own
	config.ContentType = "application/vnd.kubernetes.protobuf"
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	pattern := node("", *cpu, *memory, *gpus, *labels)
	names := make([]string, *count)
	for i := range names {
		names[i] = fmt.Sprintf("%s%04d", *prefix, i)
	}
	ctx := context.Background()
	spread(*workers, names, func(name string) {
		if err := enter(ctx, api, name, pattern); err != nil {
			log.Fatal(err)
		}
	})
	p := &paper{api: api, prefix: *prefix,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())}
	p.follow(ctx)
	fmt.Printf("%d nodes\n", *count) // the caller waits for this line
	for range *workers {
		go p.work(ctx)
	}
	for {
		round := time.Now()
		spread(*workers, names, func(name string) { p.beat(ctx, name) })
		time.Sleep(max(0, *every-time.Since(round)))
	}
}

// spread calls do for each name, a few at a time, and returns after the last.
func spread(workers int, names []string, do func(string)) {
	next, done := make(chan string), make(chan struct{})
	for range workers {
		go func() {
			for name := range next {
				do(name)
			}
			done <- struct{}{}
		}()
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	for range workers {
		<-done
	}
}

func node(name, cpu, memory, gpus, labels string) *core.Node {
	resources := core.ResourceList{
		core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory),
		core.ResourcePods: resource.MustParse("250"), core.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	if amount := resource.MustParse(gpus); !amount.IsZero() {
		resources["nvidia.com/gpu"] = amount
	}
	tags := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "paper": "true"}
	for _, pair := range strings.Split(labels, ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			tags[key] = value
		}
	}
	now := meta.Now()
	return &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: tags},
		Status: core.NodeStatus{
			Capacity: resources, Allocatable: resources,
			NodeInfo: core.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v0-paper"},
			Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "OnPaper",
				LastHeartbeatTime: now, LastTransitionTime: now}},
		},
	}
}

// enter makes a node and its lease, or brings those that are there up to date.
func enter(ctx context.Context, api kubernetes.Interface, name string, pattern *core.Node) error {
	one := pattern.DeepCopy()
	one.Name, one.Labels[core.LabelHostname] = name, name
	if _, err := api.CoreV1().Nodes().Create(ctx, one, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	if _, err := api.CoreV1().Nodes().UpdateStatus(ctx, one, meta.UpdateOptions{}); err != nil {
		return err
	}
	seconds, now := int32(40), meta.NowMicro()
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	if _, err := api.CoordinationV1().Leases(leases).Create(ctx, lease, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// silent tells whether a node shall look lost; a node that was deleted gets no heartbeat either.
func (p *paper) silent(name string) bool {
	found, err := p.nodes.Get(name)
	if err != nil {
		return true
	}
	_, marked := found.Annotations["paper/silent"]
	return marked
}

func (p *paper) beat(ctx context.Context, name string) {
	if p.silent(name) {
		return
	}
	renewal, _ := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": meta.NowMicro()}})
	if _, err := p.api.CoordinationV1().Leases(leases).Patch(ctx, name, types.MergePatchType, renewal, meta.PatchOptions{}); err != nil {
		log.Printf("heartbeat of %s: %v", name, err)
	}
}

// follow keeps copies of nodes and bound pods, and puts each pod of ours that changes into the queue.
func (p *paper) follow(ctx context.Context) {
	bound := informers.NewSharedInformerFactoryWithOptions(p.api, 0, informers.WithTweakListOptions(func(o *meta.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	all := informers.NewSharedInformerFactory(p.api, 0)
	p.pods, p.nodes = bound.Core().V1().Pods().Lister(), all.Core().V1().Nodes().Lister()
	all.Core().V1().Nodes().Informer()
	noticed := func(object any) {
		if pod, ok := object.(*core.Pod); ok && strings.HasPrefix(pod.Spec.NodeName, p.prefix) {
			p.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	bound.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: noticed, UpdateFunc: func(_, object any) { noticed(object) },
	})
	for _, factory := range []informers.SharedInformerFactory{all, bound} {
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
}

func (p *paper) work(ctx context.Context) {
	for {
		key, end := p.queue.Get()
		if end {
			return
		}
		later, err := p.settle(ctx, key)
		switch {
		case err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err):
			log.Printf("%s: %v", key, err)
			p.queue.AddRateLimited(key)
		case later > 0:
			p.queue.AddAfter(key, later)
			fallthrough
		default:
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

// settle takes a pod one step further; the answer is how long until it is to be looked at again (0: when it changes).
func (p *paper) settle(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	seen, err := p.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil {
		return 0, err
	}
	if p.silent(seen.Spec.NodeName) {
		return time.Second, nil
	}
	api := p.api.CoreV1().Pods(key.Namespace)
	if seen.DeletionTimestamp != nil {
		if seen.Status.Phase == core.PodRunning { // a kubelet tells how it ended before it lets it go
			_, err = api.UpdateStatus(ctx, ended(seen), meta.UpdateOptions{})
			return 0, err
		}
		now := meta.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: meta.NewUIDPreconditions(string(seen.UID))}
		return 0, api.Delete(ctx, key.Name, now)
	}
	var next *core.Pod
	switch seen.Status.Phase {
	case core.PodPending:
		if seen.Annotations["paper/stuck"] == "true" {
			return 0, nil
		}
		next = begun(seen)
	case core.PodRunning:
		seconds, err := strconv.ParseFloat(seen.Annotations["paper/seconds"], 64)
		if err != nil || seen.Status.StartTime == nil {
			return 0, nil
		}
		if left := time.Until(seen.Status.StartTime.Add(time.Duration(seconds * float64(time.Second)))); left > 0 {
			return left, nil
		}
		next = ended(seen)
	default:
		return 0, nil
	}
	_, err = api.UpdateStatus(ctx, next, meta.UpdateOptions{})
	return 0, err
}

func begun(pod *core.Pod) *core.Pod {
	pod = pod.DeepCopy()
	now, started := meta.Now(), true
	status := &pod.Status
	status.Phase, status.StartTime, status.HostIP = core.PodRunning, &now, "192.0.2.1"
	status.PodIP = "192.0.2.2" // from the block for documentation: nobody is there
	status.PodIPs = []core.PodIP{{IP: status.PodIP}}
	status.Conditions, status.ContainerStatuses = nil, nil
	for _, kind := range []core.PodConditionType{core.PodScheduled, core.PodInitialized, core.ContainersReady, core.PodReady} {
		status.Conditions = append(status.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: "paper://" + string(pod.UID) + "/" + container.Name,
			Ready: true, Started: &started, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
	return pod
}

func ended(pod *core.Pod) *core.Pod {
	pod = pod.DeepCopy()
	code, _ := strconv.Atoi(pod.Annotations["paper/exit"])
	phase, reason := core.PodSucceeded, "Completed"
	if code != 0 {
		phase, reason = core.PodFailed, "Error"
	}
	pod.Status.Phase = phase
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		container.Ready = false
		container.State = core.ContainerState{Terminated: &core.ContainerStateTerminated{
			ExitCode: int32(code), Reason: reason, ContainerID: container.ContainerID, StartedAt: *pod.Status.StartTime, FinishedAt: meta.Now(),
		}}
	}
	return pod
}
