package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// loadPod makes the requests, from inside the cluster. Each load pod has a new address,
// unknown to connection tracking.
type loadPod struct {
	log   io.ReadCloser
	lines chan load.Tally // the newest line
}

// startLoad starts a pod that loads a Service at the cluster IP, over conns connections
// that are kept, or over a new connection for each request if conns is 0.
func (c *cluster) startLoad(ctx context.Context, s *core.Service, conns, rate int) (*loadPod, error) {
	addr := net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(s.Spec.Ports[0].Port)))
	pods := c.CoreV1().Pods(c.namespace)
	pod, err := pods.Create(ctx, newLoadPod(c.images[loader], "-rate="+strconv.Itoa(rate), "-conns="+strconv.Itoa(conns), addr), meta.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot make the load: %w", err)
	}
	err = c.until(ctx, "the load", func(ctx context.Context) (bool, error) {
		now, err := pods.Get(ctx, pod.Name, meta.GetOptions{})
		if err != nil || now.Status.Phase == core.PodRunning {
			return err == nil, err
		}
		return false, c.stuck(ctx, "app=load")
	})
	if err != nil {
		return nil, err
	}
	log, err := pods.GetLogs(pod.Name, &core.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the load's log: %w", err)
	}
	l := &loadPod{log, make(chan load.Tally, 1)}
	go l.read()
	return l, nil
}

func newLoadPod(image string, args ...string) *core.Pod {
	need := core.ResourceList{core.ResourceCPU: resource.MustParse("100m"), core.ResourceMemory: resource.MustParse("64Mi")}
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{GenerateName: "load-", Labels: map[string]string{"app": "load"}},
		Spec: core.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &core.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []core.Container{{
				Name: "load", Image: image, Args: args,
				Resources: core.ResourceRequirements{Requests: need},
				SecurityContext: &core.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
				},
			}},
		},
	}
}

// read keeps the newest line.
func (l *loadPod) read() {
	defer close(l.lines)
	lines := bufio.NewScanner(l.log)
	for lines.Scan() {
		var t load.Tally
		if json.Unmarshal(lines.Bytes(), &t) != nil {
			return
		}
		select {
		case <-l.lines:
		default:
		}
		l.lines <- t
	}
}

func (l *loadPod) next(ctx context.Context) (load.Tally, error) {
	select {
	case t, ok := <-l.lines:
		if !ok {
			return t, errors.New("the load has ended by itself")
		}
		return t, nil
	case <-ctx.Done():
		return load.Tally{}, ctx.Err()
	}
}

// flows waits for two seconds of answered requests. Before the rollout none may fail.
func (l *loadPod) flows(ctx context.Context, rate int) error {
	for {
		t, err := l.next(ctx)
		if err != nil {
			return err
		}
		if t.Failed() > 0 {
			return fmt.Errorf("before the rollout %s", t.Summary())
		}
		if t.Settled > 2*rate {
			return nil
		}
	}
}

// settled waits until every request that has begun by now has ended, and returns the
// tally.
func (l *loadPod) settled(ctx context.Context) (t load.Tally, err error) {
	for range 2 { // the first may be old
		t, err = l.next(ctx)
		if err != nil {
			return t, err
		}
	}
	for sent := t.Sent; t.Settled < sent; {
		t, err = l.next(ctx)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

func (l *loadPod) close() { l.log.Close() }
