// Command controllers runs controllers of a real kube-controller-manager before any API server: the
// same constructors, with what their process gives them (one set of shared informers that drops
// managed fields, a client for each controller, 5 workers), and without the rest of that process.
//
// It prints "running" when the caches have synced, and stops on SIGINT and SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

const minResync = 12 * time.Hour

type options struct {
	server, kubeconfig, contentType string
	run                             string
	workers                         int
	qps                             float64
	burst                           int
}

// A controller works with this many workers until the context ends.
type controller interface {
	Run(ctx context.Context, workers int)
}

type constructor func(context.Context, informers.SharedInformerFactory, kubernetes.Interface) (controller, error)

// By the name of kube-controller-manager's --controllers: the name in their User-Agent, and how they are made.
var controllers = map[string]struct {
	agent string
	make  constructor
}{
	"deployment": {"deployment-controller", newDeployment},
	"replicaset": {"replicaset-controller", newReplicaSet},
}

func newReplicaSet(ctx context.Context, shared informers.SharedInformerFactory, client kubernetes.Interface) (controller, error) {
	sets, pods := shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods()
	return replicaset.NewReplicaSetController(ctx, sets, pods, client, replicaset.BurstReplicas), nil
}

func newDeployment(ctx context.Context, shared informers.SharedInformerFactory, client kubernetes.Interface) (controller, error) {
	apps := shared.Apps().V1()
	return deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), shared.Core().V1().Pods(), client)
}

func main() {
	chosen := readOptions()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, chosen); err != nil {
		fmt.Fprintf(os.Stderr, "controllers: %v\n", err)
		os.Exit(1)
	}
}

func readOptions() options {
	var chosen options
	klog.InitFlags(nil)
	names := strings.Join(slices.Sorted(maps.Keys(controllers)), ", ")
	flag.StringVar(&chosen.server, "server", "", "URL of the API server; overrides that of the kubeconfig")
	flag.StringVar(&chosen.kubeconfig, "kubeconfig", "", "file that leads to the API server")
	flag.StringVar(&chosen.run, "run", "replicaset", "controllers to run, by commas; there are "+names)
	flag.IntVar(&chosen.workers, "workers", 5, "syncs at a time, for each controller")
	flag.Float64Var(&chosen.qps, "qps", 20, "requests a second, for each controller; -1: as many as there are")
	flag.IntVar(&chosen.burst, "burst", 30, "requests at once, for each controller")
	flag.StringVar(&chosen.contentType, "content-type", runtime.ContentTypeJSON, "encoding of requests")
	flag.Parse()
	return chosen
}

func run(ctx context.Context, chosen options) error {
	config, err := configuration(chosen)
	if err != nil {
		return err
	}
	client, err := clientFor(config, "shared-informers")
	if err != nil {
		return err
	}
	resync := time.Duration(float64(minResync) * (rand.Float64() + 1))
	shared := informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(trim))
	made, err := construct(ctx, strings.Split(chosen.run, ","), shared, config)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	var running sync.WaitGroup
	for _, each := range made {
		running.Go(func() { each.Run(ctx, chosen.workers) })
	}
	for kind, synced := range shared.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("stopped before the cache of %v had synced", kind)
		}
	}
	fmt.Println("running")
	running.Wait()
	return nil
}

func configuration(chosen options) (*rest.Config, error) {
	if chosen.server == "" && chosen.kubeconfig == "" {
		return nil, errors.New("say where the API server is: --server URL or --kubeconfig FILE")
	}
	config, err := clientcmd.BuildConfigFromFlags(chosen.server, chosen.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(chosen.qps), chosen.burst
	config.ContentType = chosen.contentType
	config.AcceptContentTypes = chosen.contentType + "," + runtime.ContentTypeJSON
	return config, nil
}

func clientFor(config *rest.Config, agent string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), agent))
}

func construct(ctx context.Context, names []string, shared informers.SharedInformerFactory, config *rest.Config) ([]controller, error) {
	var made []controller
	for _, name := range names {
		known, ok := controllers[name]
		if !ok {
			return nil, fmt.Errorf("there is no controller %q; there are %v", name, slices.Sorted(maps.Keys(controllers)))
		}
		client, err := clientFor(config, known.agent)
		if err != nil {
			return nil, err
		}
		each, err := known.make(ctx, shared, client)
		if err != nil {
			return nil, err
		}
		made = append(made, each)
	}
	return made, nil
}

// Kube-controller-manager keeps no managed fields in its caches.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
