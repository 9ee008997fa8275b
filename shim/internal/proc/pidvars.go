package proc

import (
	"os"
	"slices"
	"strconv"
)

// listenPID names the process that inherits sockets by its PID; other processes ignore the
// sockets. See sd_listen_fds(3).
const listenPID = "LISTEN_PID="

// addresses reports whether LISTEN_PID in env names the process pid.
func addresses(env []string, pid string) bool { return slices.Contains(env, listenPID+pid) }

// readdress makes a LISTEN_PID in env that names the process from name this process.
func readdress(env []string, from string) {
	if i := slices.Index(env, listenPID+from); i >= 0 {
		env[i] = listenPID + strconv.Itoa(os.Getpid())
	}
}
