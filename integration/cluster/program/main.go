// The whole of a Kubernetes cluster as one program, so that it is compiled and linked once.
//
// The name that it is called by says which part runs, or else the first argument; the rest belongs to that part:
//
//	cluster kube-apiserver --etcd-servers ...
//	kubectl get nodes
//
// Kubernetes, etcd and CoreDNS come as Go modules and are used as they are. Two parts are our own: gpu-plugin lends made-up
// GPUs to a kubelet, paper-nodes keeps Node objects alive that have no machine.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlerrors "k8s.io/kubectl/pkg/cmd/util"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// daemon wraps one of Kubernetes' own commands. The command is built late: building it registers flags that the other
// parts would not understand.
func daemon(build func() *cobra.Command) func() int {
	return func() int { return cli.Run(build()) }
}

// parts maps the first argument to what runs. Each part finds its own arguments in os.Args, with its name as os.Args[0].
var parts = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver":          daemon(kubeapiserver.NewAPIServerCommand),
	"kube-controller-manager": daemon(kubecontrollers.NewControllerManagerCommand),
	"kube-scheduler":          daemon(func() *cobra.Command { return kubescheduler.NewSchedulerCommand() }),
	"kube-proxy":              daemon(kubeproxy.NewProxyCommand),
	"kubelet":                 daemon(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl": func() int {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlerrors.CheckErr(err)
		}
		return 0
	},
	"coredns":     serveNames,
	"gpu-plugin":  lendGPUs,
	"paper-nodes": keepPaperNodes,
}

func main() {
	if part, known := parts[filepath.Base(os.Args[0])]; known {
		os.Exit(part())
	}
	if len(os.Args) > 1 {
		if part, known := parts[os.Args[1]]; known {
			os.Args = os.Args[1:]
			os.Exit(part())
		}
	}
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintln(os.Stderr, "usage: cluster PART ARGUMENTS...\nparts:", strings.Join(names, " "))
	os.Exit(2)
}
