package stop_test

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// Tests of --alive-file and --wait-gone: two containers of a pod that share a volume. What is an
// alive file, and which files are waited for, package alive tests.

// TestWaitGone: --wait-gone waits for files that may belong to a running app, not for stale
// or missing files, and warns of paths that are a mistake.
func TestWaitGone(t *testing.T) {
	for _, c := range box.Table(`
		case        | before                                   | flags         | session
		no folder   | true                                     |               | elapsed / warns there is no directory
		stale       | mkdir in; echo lameduck alive 1 >in/file |               | elapsed / warns
		foreign     | mkdir in; echo 1234 >in/file             | --max-delay=2 | ceiling / warns
		a folder    | mkdir -p in/file                         | --max-delay=2 | ceiling / warns is a directory
		floor kept  | mkdir in                                 | --delay=1     | elapsed / warns
		and silence | mkdir in                                 | --until=quiet | no_listener / warns
	`) {
		c["line"] = "sh -c '" + c["before"] + `; exec "$@"' sh LAMEDUCK --grace-period=30 --wait-gone=DIR/in/file ` + c["flags"] + " CATCH"
		c["session"] = "ready / TERM / got TERM / > exit 7 / exits 7 / ended " + c["session"]
		c.Play(t, nil)
	}
}

// TestAliveFile: the alive file is there while the command runs, and gone when the command has
// ended, in whatever way, or has not started, as after a stop signal before its start. An alive file or a termination log that cannot be
// written, or belongs to another program, keeps the command from starting, and stays.
func TestAliveFile(t *testing.T) {
	const first = `sh -c 'LAMEDUCK --alive-file=first --health=127.0.0.1:9 sh -c "echo >up; sleep 1000" & until [ -e up ]; do sleep 0.01; done; exec "$@"' sh `
	box.Sessions(t, map[string][]string{"LOOKS": {"sh", "-c", "echo $(grep -c . alive) line; exit 7"}}, strings.ReplaceAll(`
	case | on | faults | line | session
	root | | | LAMEDUCK --alive-file=alive LOOKS | 1 line / exits 7 / gone DIR/alive
	nobody | shared | uid=65534 | LAMEDUCK --alive-file=alive LOOKS | 1 line / exits 7 / gone DIR/alive
	killed | | | LAMEDUCK --alive-file=alive sh -c 'kill -KILL $$' | exits 137 / gone DIR/alive
	missing | | | LAMEDUCK --alive-file=alive /no/such/program | exits 127 / gone DIR/alive
	refused | | | LAMEDUCK --alive-file=alive /etc/passwd | exits 126 / gone DIR/alive
	lingers | | | LAMEDUCK --alive-file=alive --linger=1 sh -c 'echo $(grep -c . alive) line; sleep 9&' | 1 line / exits 0 / gone DIR/alive
	a signal before the start | | pending=TERM | LAMEDUCK -d 1 --on-stop='echo ran' --alive-file=alive echo started | exits 143 / only / gone DIR/alive
	an address in use | network | | FIRST LAMEDUCK --alive-file=alive --health=127.0.0.1:9 echo started | exits 125 / err cannot listen on 127.0.0.1:9: address already in use / only / gone DIR/alive
	no regular log | | | LAMEDUCK --alive-file=alive --termination-log=/dev/stderr echo started | exits 125 / err not a regular file: give a file, or none / only / gone DIR/alive
	read-only | | read-only | LAMEDUCK --alive-file=alive echo started | exits 125 / err read-only file system / only
	foreign | | | sh -c 'echo 1234 >alive; exec "$@"' sh LAMEDUCK --alive-file=alive echo started | exits 125 / err cannot overwrite a file of another program / only / file DIR/alive
	first | network | | FIRST LAMEDUCK --alive-file=first echo started | exits 125 / err another running lameduck holds the lock / only / file DIR/first
	`, "FIRST ", first))
}
