package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// play rolls a row's Deployment under load, and cleans up afterwards.
func (c *cluster) play(ctx context.Context, r *row, o *options) (err error) {
	list, err := r.objects()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.clear(context.WithoutCancel(ctx), list)) }()
	if r.policy {
		defer func() { err = errors.Join(err, c.endPolicy(context.WithoutCancel(ctx))) }()
		err = c.beginPolicy(ctx)
	}
	var d *apps.Deployment
	var service *core.Service
	if err == nil {
		d, service, err = c.apply(ctx, list)
	}
	if err == nil {
		err = c.ready(ctx, d)
	}
	if no := refusal(""); r.optional && errors.As(err, &no) {
		r.reason = string(no)
		return nil
	}
	if err != nil {
		return err
	}
	l, err := c.startLoad(ctx, service, r.conns(), o.rate)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.flows(ctx, o.rate); err != nil {
		return err
	}
	for range o.rollouts {
		stops, err := c.roll(ctx, d)
		if err != nil {
			return err
		}
		before := r.tally.Failed()
		r.tally, err = l.settled(ctx)
		if err != nil {
			return err
		}
		r.stops = append(r.stops, stops...)
		r.failed = append(r.failed, r.tally.Failed()-before)
	}
	return nil
}

// refusal is the reason why a cluster refuses an object.
type refusal string

func (r refusal) Error() string { return string(r) }

// apply creates all objects.
func (c *cluster) apply(ctx context.Context, list []runtime.Object) (d *apps.Deployment, s *core.Service, err error) {
	for _, object := range list {
		switch object := object.(type) {
		case *core.ConfigMap:
			_, err = c.CoreV1().ConfigMaps(c.namespace).Create(ctx, object, meta.CreateOptions{})
		case *core.Service:
			s, err = c.CoreV1().Services(c.namespace).Create(ctx, object, meta.CreateOptions{})
		case *apps.Deployment:
			err = c.renamed(&object.Spec.Template.Spec)
			if err == nil {
				d, err = c.AppsV1().Deployments(c.namespace).Create(ctx, object, meta.CreateOptions{})
			}
		}
		if api.IsInvalid(err) {
			return nil, nil, refusal(err.Error())
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return d, s, nil
}

// podsOf returns the selector of a Deployment's pods.
func podsOf(d *apps.Deployment) string {
	return labels.SelectorFromSet(d.Spec.Selector.MatchLabels).String()
}

// ready waits until all pods are of the newest revision and available.
func (c *cluster) ready(ctx context.Context, d *apps.Deployment) error {
	var refused error
	err := c.until(ctx, "the pods of "+d.Name, func(ctx context.Context) (bool, error) {
		now, err := c.AppsV1().Deployments(c.namespace).Get(ctx, d.Name, meta.GetOptions{})
		if err != nil {
			return false, err
		}
		s, n := now.Status, *now.Spec.Replicas
		if s.ObservedGeneration >= now.Generation && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.Replicas == n {
			return true, nil
		}
		refused = c.stuck(ctx, podsOf(d))
		return false, refused
	})
	if refused != nil {
		return refused
	}
	return err
}

// stuck returns the reason why a pod cannot start, or nil.
func (c *cluster) stuck(ctx context.Context, selector string) error {
	pods, err := c.CoreV1().Pods(c.namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			switch w := s.State.Waiting; {
			case w == nil:
			case strings.HasPrefix(w.Reason, "Err"), strings.HasSuffix(w.Reason, "Error"), strings.HasSuffix(w.Reason, "BackOff"), w.Reason == "InvalidImageName":
				text := fmt.Sprintf("%s: %s: %s", s.Name, w.Reason, w.Message)
				if last := s.LastTerminationState.Terminated; last != nil && strings.HasSuffix(w.Reason, "BackOff") {
					text += fmt.Sprintf(" (exit %d: %s)", last.ExitCode, last.Message)
				}
				return refusal(text)
			}
		}
	}
	return nil
}

// clear deletes a row's objects and kills the pods, without their holds, so that the next
// row's Service has only the next row's pods.
func (c *cluster) clear(ctx context.Context, list []runtime.Object) error {
	for _, object := range list {
		var err error
		background := meta.DeletePropagationBackground
		switch object := object.(type) {
		case *core.ConfigMap:
			err = c.CoreV1().ConfigMaps(c.namespace).Delete(ctx, object.Name, meta.DeleteOptions{})
		case *core.Service:
			err = c.CoreV1().Services(c.namespace).Delete(ctx, object.Name, meta.DeleteOptions{})
		case *apps.Deployment:
			err = c.AppsV1().Deployments(c.namespace).Delete(ctx, object.Name, meta.DeleteOptions{PropagationPolicy: &background})
		}
		if ignore(err, api.IsNotFound) != nil {
			return err
		}
	}
	return c.until(ctx, "the end of the pods", func(ctx context.Context) (bool, error) {
		err := c.CoreV1().Pods(c.namespace).DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: new(int64(1))}, meta.ListOptions{})
		if err != nil {
			return false, err
		}
		pods, err := c.CoreV1().Pods(c.namespace).List(ctx, meta.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}
