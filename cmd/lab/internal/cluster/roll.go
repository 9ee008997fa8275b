package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// stop is the end of one pod as the API shows the end, up to a second late.
type stop struct {
	began    time.Time
	took     time.Duration
	messages []string // the containers' termination messages
}

// held matches lameduck's report at the end of a hold: what was at risk, and the hold.
var held = regexp.MustCompile(`: (?:([^:]+): )?(held [0-9.]+ s \((\w+)[^)]*\))`)

// ended returns why the holds of the containers ended.
func (s *stop) ended() (reasons []string) {
	for _, text := range s.messages {
		if m := held.FindStringSubmatch(text); m != nil {
			reasons = append(reasons, m[3])
		}
	}
	return reasons
}

// uncut returns how many containers got their signal at a moment without a request in
// flight, which lameduck looks for where requests come to the end.
func (s *stop) uncut() (n int) {
	for _, text := range s.messages {
		if m := held.FindStringSubmatch(text); m != nil && strings.HasPrefix(m[1], "nothing in flight") {
			n++
		}
	}
	return n
}

// holds lists the containers' holds.
func (s *stop) holds() string {
	var parts []string
	for _, text := range s.messages {
		if m := held.FindStringSubmatch(text); m != nil {
			parts = append(parts, strings.TrimSuffix(m[2]+", "+m[1], ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// roll replaces all pods of a Deployment and follows the old pods to their ends.
func (c *cluster) roll(ctx context.Context, d *apps.Deployment) ([]stop, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods := c.CoreV1().Pods(c.namespace)
	old, err := pods.List(ctx, meta.ListOptions{LabelSelector: podsOf(d)})
	if err != nil {
		return nil, err
	}
	stops := map[string]*stop{}
	for _, pod := range old.Items {
		stops[pod.Name] = &stop{}
	}
	events, err := pods.Watch(ctx, meta.ListOptions{LabelSelector: podsOf(d), ResourceVersion: old.ResourceVersion})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	restart := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted":%q}}}}}`, time.Now())
	if _, err := c.AppsV1().Deployments(c.namespace).Patch(ctx, d.Name, types.StrategicMergePatchType, []byte(restart), meta.PatchOptions{}); err != nil {
		return nil, err
	}
	var done []stop
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*core.Pod)
		if !ok {
			return nil, fmt.Errorf("cannot watch the pods: %v", event.Object)
		}
		s := stops[pod.Name]
		if s == nil {
			continue
		}
		s.follow(pod)
		if event.Type == watch.Deleted {
			done = append(done, *s)
			delete(stops, pod.Name)
			if len(stops) == 0 {
				return done, c.ready(ctx, d)
			}
		}
	}
	return nil, errors.Join(errors.New("cannot watch the pods to their ends"), ctx.Err(), c.stuck(context.WithoutCancel(ctx), podsOf(d)))
}

// follow records an update of a pod that stops.
func (s *stop) follow(pod *core.Pod) {
	if pod.DeletionTimestamp == nil {
		return
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	var messages []string
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated != nil {
			messages = append(messages, status.State.Terminated.Message)
		}
	}
	if len(messages) == len(pod.Status.ContainerStatuses) && s.took == 0 {
		s.took, s.messages = time.Since(s.began), messages
	}
}
