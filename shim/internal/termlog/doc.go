// Package termlog writes the termination message of a container: a file of which Kubernetes
// shows the last 4096 bytes when the container has ended.
//
// The command may write to the file as well, so the text of others is never overwritten:
// lameduck's text follows where the text fits. Writing happens on a goroutine of its own,
// because a volume that hangs must not delay a stop.
package termlog
