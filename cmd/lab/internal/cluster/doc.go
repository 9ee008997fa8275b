// E2e rolls Deployments in a real cluster, under load, and counts what is lost: with
// each manifest beside it as it is, and with what people have without lameduck.
//
//	go run ./e2e [flags]    from testdata/k8s; make e2e-k8s does it
//
// The cluster is the one that KUBECONFIG names; without it, or where it does not answer,
// there is nothing to do. The images are made here, from scratch and of static
// programs, without any engine; the servers in them are stand-ins (see server), with
// the paths, the STOPSIGNALs and the graceful stops of the real ones. Getting them
// into the cluster is what depends on the place: E2E_LOAD is a shell command, run for
// each image with ARCHIVE (a docker archive) and IMAGE (its name) in the environment:
//
//	kind        kind load image-archive "$ARCHIVE"
//	k3d         k3d image import "$ARCHIVE"
//	minikube    minikube image load "$ARCHIVE"
//	containerd  ctr -n k8s.io images import "$ARCHIVE"
//	a registry  crane push "$ARCHIVE" "$IMAGE"
//
// E2E_IMAGES is what the names begin with, for a registry its host and path. A name's
// tag is of the image's content.
//
// All happens in a namespace of its own, that Pod Security restricts and that has a
// Service called lameduck, and which is deleted at the end, as is the policy, whose
// scope is narrowed to it. The load comes from a pod, through the Service's cluster
// IP, at a fixed rate whatever becomes of the earlier requests; nothing is retried. A
// row in which the load stood still is played again.
//
// It fails where a row of lameduck's loses a request or tells of no hold, and where a
// server that TERM kills loses none: the load would see nothing then.
package main
