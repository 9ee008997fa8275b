package proc

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pidVariables address a process by its pid; other processes ignore the announcement. See sd_listen_fds(3) and sd_watchdog_enabled(3).
var pidVariables = []string{"LISTEN_PID=", "WATCHDOG_PID="}

// listenPIDFDID is the inode number of the pidfd of the process that LISTEN_PID
// addresses; see sd_listen_fds(3).
const listenPIDFDID = "LISTEN_PIDFDID="

// addresses reports whether a variable of env addresses the process pid.
func addresses(env []string, pid string) bool {
	return slices.ContainsFunc(pidVariables, func(name string) bool { return slices.Contains(env, name+pid) })
}

// readdress makes the variables of env that address the process from address this process.
func readdress(env []string, from string) {
	listens := slices.Contains(env, pidVariables[0]+from)
	for i, entry := range env {
		for _, name := range pidVariables {
			if entry == name+from {
				env[i] = name + strconv.Itoa(os.Getpid())
			}
		}
		if listens && strings.HasPrefix(entry, listenPIDFDID) {
			env[i] = pidfdVariable(entry)
		}
	}
}

// pidfdVariable returns listenPIDFDID with the number of this process, or entry on an
// error.
func pidfdVariable(entry string) string {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return entry
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return entry
	}
	return listenPIDFDID + strconv.FormatUint(stat.Ino, 10)
}
