package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	answer   = 10 * time.Second       // how long a cluster may take to say that it is there
	patience = 5 * time.Minute        // and for anything else
	look     = 200 * time.Millisecond // between two looks at what one waits for
)

// cluster is what KUBECONFIG names, and a namespace of ours in it.
type cluster struct {
	*kubernetes.Clientset
	dynamic       dynamic.Interface
	version, arch string
	namespace     string
	images        map[string]string // what the cluster calls each image of the manifests
}

// connect skips where there is no cluster.
func connect(ctx context.Context) (*cluster, error) {
	if os.Getenv("KUBECONFIG") == "" {
		return nil, skipped("KUBECONFIG names no cluster")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst, config.WarningHandler = 50, 100, rest.NoWarnings{}
	c := &cluster{arch: runtime.GOARCH}
	if c.Clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	var v version.Info
	text, err := c.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, skipped("the cluster does not answer: " + err.Error())
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	c.version = v.GitVersion
	nodes, err := c.CoreV1().Nodes().List(ctx, meta.ListOptions{Limit: 1})
	if err == nil && len(nodes.Items) > 0 { // not everybody may list them
		c.arch = nodes.Items[0].Status.NodeInfo.Architecture
	}
	return c, nil
}

// open makes a namespace in which only restricted pods may run, and in it a Service
// that is called lameduck: Kubernetes tells all pods of it, in variables that look
// like ours.
func (c *cluster) open(ctx context.Context) error {
	space, err := c.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{
		GenerateName: "lameduck-e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, meta.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot make a namespace: %w", err)
	}
	c.namespace = space.Name
	_, err = c.CoreV1().Services(c.namespace).Create(ctx, &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: "lameduck"},
		Spec:       core.ServiceSpec{Ports: []core.ServicePort{{Port: 80}}},
	}, meta.CreateOptions{})
	if err == nil {
		err = c.until(ctx, "the namespace's service account", func(ctx context.Context) (bool, error) {
			_, err := c.CoreV1().ServiceAccounts(c.namespace).Get(ctx, "default", meta.GetOptions{})
			return err == nil, ignore(err, errors.IsNotFound)
		})
	}
	if err != nil {
		err = fmt.Errorf("%w; %w", err, c.close())
	}
	return err
}

// close deletes the namespace, whatever became of the rest, and waits for its end.
func (c *cluster) close() error {
	ctx := context.Background()
	if err := c.CoreV1().Namespaces().Delete(ctx, c.namespace, meta.DeleteOptions{}); err != nil {
		return fmt.Errorf("cannot delete the namespace %s: %w", c.namespace, err)
	}
	return c.until(ctx, "the end of namespace "+c.namespace, func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().Namespaces().Get(ctx, c.namespace, meta.GetOptions{})
		return errors.IsNotFound(err), ignore(err, errors.IsNotFound)
	})
}

// until waits for something.
func (c *cluster) until(ctx context.Context, what string, is wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, look, patience, true, is); err != nil {
		return fmt.Errorf("cannot wait for %s: %w", what, err)
	}
	return nil
}

// ignore is err, or nil where it is of a kind.
func ignore(err error, is func(error) bool) error {
	if is(err) {
		return nil
	}
	return err
}
