// Package proc starts the command, signals processes and reaps children.
//
// One goroutine, the loop's, may call Kill and Reap: a process id cannot be used again
// between the two. While that goroutine waits, package sigcatch reaps orphans in its place.
// Whatever Go's runtime might need from the system later (threads, epoll)
// is fetched before the command starts, since a full pids cgroup kills a Go program that
// needs one more thread.
//
// See execvp(3), wait(2), setpgid(2), tcsetpgrp(3), prctl(2).
package proc
