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
	answer   = 10 * time.Second       // bounds the first answer of a cluster
	patience = 5 * time.Minute        // bounds every other wait
	interval = 200 * time.Millisecond // between two polls of a wait
)

// cluster is the cluster that KUBECONFIG names, with a namespace for the experiment.
type cluster struct {
	*kubernetes.Clientset
	dynamic       dynamic.Interface
	version, arch string
	namespace     string
	images        map[string]string // the cluster's names for the images of the manifests
}

// connect returns a skipped error without a cluster.
func connect(ctx context.Context) (*cluster, error) {
	if os.Getenv("KUBECONFIG") == "" {
		return nil, skipped("KUBECONFIG names no cluster")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	c := &cluster{arch: runtime.GOARCH}
	c.Clientset, err = kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c.dynamic, err = dynamic.NewForConfig(config)
	if err != nil {
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
	if err == nil && len(nodes.Items) > 0 { // some users may not list nodes
		c.arch = nodes.Items[0].Status.NodeInfo.Architecture
	}
	return c, nil
}

// open makes a namespace for restricted pods only, with a Service called lameduck:
// Kubernetes gives all pods variables of that Service, with names like lameduck's own.
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

// close deletes the namespace and waits for the end of the deletion.
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

// until waits for a condition.
func (c *cluster) until(ctx context.Context, what string, is wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, interval, patience, true, is); err != nil {
		return fmt.Errorf("cannot wait for %s: %w", what, err)
	}
	return nil
}

// ignore returns nil for errors of a kind, and err otherwise.
func ignore(err error, is func(error) bool) error {
	if is(err) {
		return nil
	}
	return err
}
