// Package cluster rolls Deployments in a real Kubernetes cluster, under load, and counts the
// lost requests: with the usual remedies without lameduck and with lameduck, before a
// server that dies of TERM and before a server that TERM stops gracefully, and with each
// manifest of docs/examples/kubernetes as written.
//
//	lab cluster [flags]
//
// The cluster is the one that KUBECONFIG names. Without KUBECONFIG, or where the cluster
// does not answer, there is nothing to do. What happens in the cluster is in cluster.sh, by
// kubectl and jq; here are the rows and what they promise. The images are made from scratch
// and of static programs, without any engine. The servers in the images are stand-ins (see
// server), with the paths, the STOPSIGNALs and the graceful stops of the real ones.
// E2E_LOAD is the shell command that brings an image into the cluster, run for each image
// with ARCHIVE (a docker archive) and IMAGE (the image's name) in the environment:
//
//	kind        kind load image-archive "$ARCHIVE"
//	k3d         k3d image import "$ARCHIVE"
//	minikube    minikube image load "$ARCHIVE"
//	containerd  ctr -n k8s.io images import "$ARCHIVE"
//	a registry  crane push "$ARCHIVE" "$IMAGE"
//
// E2E_IMAGES is the beginning of the names, for a registry the host and the path. The tag
// of a name depends on the image's content.
//
// Everything happens in a new namespace, which Pod Security restricts, which has a Service
// called lameduck, and which is deleted at the end, as is the policy, whose scope is narrowed
// to the namespace. For --close-idle, Pod Security's level is baseline: restricted wants a seccomp
// profile, and containerd's forbids the flag. The load comes from a pod, through the Service's cluster
// IP, at a fixed rate whatever becomes of the earlier requests; nothing is retried. A row
// in which the load stood still is played again.
//
// Each row is played with two kinds of clients. The first opens a connection for each
// request. The second never lets go: a pool of 24 connections, used in turn, each looked at
// before reuse and replaced only when the server has closed the connection. kube-proxy
// moves new connections only, so that requests come to a stopping pod until the server
// goes (kubernetes/kubernetes#38456).
//
// What a row promises, and when the program fails, is in judge.go.
package cluster
